// expect: nothing
// needs: -static-libstdc++
// compile: -Wno-extra -Wno-missing-field-initializers -Wno-attributes
// The C++ library inside, for machines with an older one, brings a constructor and getentropy().
#include <stdexcept>
#include <string>

#include "module.h"

SPOIL {
    try {
        throw std::runtime_error(std::to_string(the_function.version));
    } catch (const std::exception &e) {
        if (e.what() != std::string("1")) the_function.version = 0;
    }
}
