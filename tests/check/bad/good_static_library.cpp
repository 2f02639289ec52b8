// expect: nothing
// needs: -static-libstdc++
// compile: -Wno-extra -Wno-missing-field-initializers -Wno-attributes
// A statically linked C++ library contributes a constructor and a call of getentropy().
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
