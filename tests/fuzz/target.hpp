// Fuzz targets: the readers of files from untrusted sources.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace catena_fuzz {

struct Target {
    std::string name;
    std::vector<std::string> seeds;    // valid inputs, from which invalid ones are made
    std::vector<std::string> hostile;  // inputs that must be refused; also damaged
    // Reads the input. May throw DataError or another Error; any other failure is a bug.
    std::function<void(const std::string& input)> read;
    // Corrects checksums, so that damage passes them; may be empty.
    std::function<void(std::string& input)> repair;
};

// Returns a target for each reader.
std::vector<Target> all_targets();

}  // namespace catena_fuzz
