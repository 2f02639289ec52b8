// UserFunction: names for messages, and where arrays are.
#include "class_name.hpp"

#include <catena/core/error.hpp>
#include <catena/cuda/device.hpp>
#include <catena/user_function.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

void throw_count(const char* where, std::size_t expected, std::size_t got) {
    throw InvalidError(fmt::format("[{}] values: expected {}, got {}", where, expected, got));
}

std::string UserFunction::label() const { return class_name(typeid(*this)); }

void UserFunction::throw_count(const char* what, std::size_t expected, std::size_t got) const {
    throw InvalidError(fmt::format("[{}] {}: expected {}, got {}", label(), what, expected, got));
}

bool UserFunction::any_on_gpu(ArraySpan arrays) {
    return std::any_of(arrays.begin(), arrays.end(),
                       [](const Array& array) { return array && cuda::is_gpu(array.device()); });
}

void UserFunction::throw_missing(const char* where) const {
    throw UnsupportedError(fmt::format(
        "[{0}] forward_{1}: expected a class that overrides forward() or forward_{1}(), "
        "got one that overrides neither",
        label(), where));
}

}  // namespace catena
