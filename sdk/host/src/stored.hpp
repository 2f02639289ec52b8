// Files of named arrays, in the format that their name tells.
#pragma once

#include "npz.hpp"
#include "safetensors.hpp"

namespace catena {

// NAME.safetensors is that format, every other name is .npz.
void write_stored(const std::filesystem::path& file, const Npz& arrays);
Npz read_stored(const std::filesystem::path& file, std::string_view path = {},
                const Wanted& wanted = {});

}  // namespace catena
