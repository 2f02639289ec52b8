// expect: nothing
// needs: -static-libstdc++
// link: -s
// compile: -Wno-extra -Wno-missing-field-initializers -Wno-attributes
// Without symbol names, the C++ library's own constructors cannot be recognized.
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
