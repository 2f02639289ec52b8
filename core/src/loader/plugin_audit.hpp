// A line for each plugin that was loaded, refused or passed over.
#pragma once

#include <catena/core/plugins.hpp>

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace catena {

// What was found out about a file, as far as it came.
struct Attempt {
    LoadedPlugin info;
    std::optional<uid_t> owner;
    mode_t mode = 0;
};

// True if $CATENA_PLUGIN_AUDIT names a file: then hashes are wanted too.
bool audit_has_file();
// To the host's log, and appended to that file. The verdict is one word; a reason may be "".
void audit(std::string_view verdict, const Attempt& attempt, std::string_view reason);
// To the file alone.
void audit_to_file(std::string_view verdict, const Attempt& attempt, std::string_view reason);

}  // namespace catena
