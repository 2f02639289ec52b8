// Arrays by name in .npz files, which NumPy reads and writes, and in .safetensors.
#pragma once

#include <catena/core/array.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace catena {

// Every array of a file, or those whose names begin with path, on a device (none: Device::current()),
// in the file's dtypes: float16, float32, float64, int32, int64, uint8 or bool. Row-major and
// column-major files are read alike; a file whose name ends in .safetensors is read as one, any other as
// .npz. Texts are passed over.
// Throws DataError if the file is missing or damaged, has a name twice or an array of another dtype.
std::map<std::string, Array> load_arrays(const std::filesystem::path& file, Device device = {},
                                         std::string_view path = {});
// The texts of a file: what visitors required of a snapshot, as "about/net".
std::map<std::string, std::string> load_texts(const std::filesystem::path& file,
                                              std::string_view path = {});

// Writes arrays under their names; empty ones are left out. The file is written under a temporary
// name, flushed and renamed, in the format that its name tells. Throws DataError.
void save_arrays(const std::filesystem::path& file, const std::map<std::string, Array>& arrays);

}  // namespace catena
