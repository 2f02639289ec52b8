// UserFunction: names for messages.
#include <catena/core/error.hpp>
#include <catena/user_function.hpp>

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

namespace catena {

std::string UserFunction::label() const {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), std::free);
    const std::string name = text ? text.get() : typeid(*this).name();
    // The last part, not looking into template arguments.
    const std::size_t colon = name.rfind("::", name.find('<'));
    return colon == name.npos ? name : name.substr(colon + 2);
}

void UserFunction::throw_count(std::size_t expected, std::size_t got) const {
    throw InvalidError(fmt::format("[{}] unpack: expected {}, got {}", label(), expected, got));
}

}  // namespace catena
