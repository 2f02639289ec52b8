// Copies templates under a new name.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace catena::scaffold {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// How the templates' own names are replaced: my_name, MyName and org.example.my_name.
struct Names {
    std::string name;  // lower case, with underscores
    std::string id;    // of the plugin and of its function
};

// "[name] expected ..., got ..." unless it is good for files, targets and identifiers.
void check_name(const std::string& name);
// Whether a program, and its target in CMake, may be called that.
void check_program(const std::string& name);
// The same for an id: what owns it, reversed, then what it is.
void check_id(const std::string& id);

// Writes the files of the templates to a folder that is new or empty; a later template replaces
// files of an earlier one. All or nothing. Throws Error.
void write(const std::vector<std::filesystem::path>& templates, const Names& names,
           const std::filesystem::path& folder);

}  // namespace catena::scaffold
