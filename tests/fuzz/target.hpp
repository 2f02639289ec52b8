// What is fuzzed: readers of files that come from anywhere.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace catena_fuzz {

struct Target {
    std::string name;
    std::vector<std::string> seeds;    // good input, of which bad input is made
    std::vector<std::string> hostile;  // input that must be refused; bad input is made of it, too
    // Reads it. Errors that it tells are DataError and its like; anything else is a bug.
    std::function<void(const std::string& input)> read;
    // Makes checksums and the like right again, so that damage gets past them; may be empty.
    std::function<void(std::string& input)> repair;
};

// One for each reader.
std::vector<Target> all_targets();

}  // namespace catena_fuzz
