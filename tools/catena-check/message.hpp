// Lines between the parent and its processes: fields of any bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace catena::check {

using Fields = std::vector<std::string>;

// What begins a line that says what a process does: it is written by hand where the heap may be broken.
inline constexpr const char* doing_line = "doing\x1f";

// With the end of the line.
std::string line_of(const Fields& fields);
Fields fields_of(std::string_view line);

std::string joined(const std::vector<int>& numbers);
std::vector<int> numbers_in(const std::string& text);

}  // namespace catena::check
