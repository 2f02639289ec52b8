// Where this library lies, and whose it is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>

namespace catena {

// Who owns the core's library, or can write to a folder above it, decides what runs anyway.
struct CorePlace {
    std::filesystem::path folder;  // without links; "" if it cannot be told
    std::optional<uid_t> owner;    // none if another file has its name by now

    bool is_below(const std::filesystem::path& above) const;
};

// Of the file that the kernel has mapped: the name by which the system's loader found it may be one
// in the folder that was current then, and now stand for a file of somebody else.
const CorePlace& core_place();

// What is mapped at an address, by the text of /proc/self/maps; where that says nothing, by the
// loader's name if it is absolute.
CorePlace find_place(std::uintptr_t address, std::istream& maps,
                     const std::filesystem::path& loaders_name);

}  // namespace catena
