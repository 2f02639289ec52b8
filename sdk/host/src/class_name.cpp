// The name of a class, as the compiler has it.
#include "class_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace catena {

std::string class_name(const std::type_info& type) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
    const std::string name = text ? text.get() : type.name();
    // The last part, not looking into template arguments.
    const std::size_t colon = name.rfind("::", name.find('<'));
    return colon == name.npos ? name : name.substr(colon + 2);
}

}  // namespace catena
