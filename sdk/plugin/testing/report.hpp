// Which texts say the same of several kernels.
#pragma once

#include "catena/testing/report.hpp"

namespace catena::testing::detail {

// The text without its kernel's dtypes and instruction set, and with # for each number.
std::string kind_of(const std::string& text);

}  // namespace catena::testing::detail
