// fail: throws an error with a formatted message. Needs the library fmt.
#pragma once

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace catena {

// Throws E: fail<ShapeError>("[resize] size: expected at least 1 x 1, got {} x {}", width, height).
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    throw E(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace catena
