// UserFunction: names for messages.
#include "class_name.hpp"

#include <catena/core/error.hpp>
#include <catena/user_function.hpp>

#include <fmt/format.h>

namespace catena {

std::string UserFunction::label() const { return class_name(typeid(*this)); }

void UserFunction::throw_count(std::size_t expected, std::size_t got) const {
    throw InvalidError(fmt::format("[{}] unpack: expected {}, got {}", label(), expected, got));
}

}  // namespace catena
