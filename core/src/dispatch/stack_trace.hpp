// Where a call was made: the addresses on the stack, and their names for people.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace catena {

std::vector<void*> stack_trace();

// A line for each frame outside of catena up to main, "\n  NAME in FILE+0xOFFSET".
// Names come from the symbol tables of the files; a stripped one gives its offsets alone.
std::string to_string(std::span<void* const> trace);

}  // namespace catena
