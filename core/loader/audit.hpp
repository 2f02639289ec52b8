// One line for each plugin that was loaded, refused or skipped.
#pragma once

#include <catena/loader/plugins.hpp>

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace catena {

// What is known of a file so far.
struct Attempt {
    explicit Attempt(const std::filesystem::path& file);

    LoadedPlugin info;
    std::optional<uid_t> owner;
    mode_t mode = 0;
};

// True if $CATENA_PLUGIN_AUDIT names a file, whose lines have hashes.
bool audit_has_file();
// Writes to the host's log, and appends to that file. The verdict is one word; reason may be "".
void audit(std::string_view verdict, const Attempt& attempt, std::string_view reason);
// Appends to the file only.
void audit_to_file(std::string_view verdict, const Attempt& attempt, std::string_view reason);

}  // namespace catena
