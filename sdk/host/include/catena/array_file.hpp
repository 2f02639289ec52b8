// Named arrays in .npz files, which NumPy reads and writes, and in .safetensors files.
#pragma once

#include <catena/core/array.hpp>

#include <filesystem>
#include <map>

namespace catena {

// Loads every array of a file, or those whose names begin with path, onto a device (default:
// Device::current()), in the file's dtypes: float16, bfloat16, float32, float64, int32, int64,
// uint8 or bool. Row-major and column-major files work. A file whose name ends in .safetensors is
// read as one, any other as .npz. Texts are skipped. Throws DataError if the file is missing or
// damaged, contains a name twice, or has an array of another dtype.
std::map<std::string, Array> load_arrays(const std::filesystem::path& file, Device device = {},
                                         std::string_view path = {});
// Loads the texts of a file, which visitors required of a snapshot, such as "about/net".
std::map<std::string, std::string> load_texts(const std::filesystem::path& file,
                                              std::string_view path = {});

// Writes arrays and texts under their names, skipping empty arrays. .safetensors stores texts as
// metadata. Its name determines the format. Writes as AtomicFile does. Throws DataError.
void save_arrays(const std::filesystem::path& file, const std::map<std::string, Array>& arrays,
                 const std::map<std::string, std::string>& texts = {});

}  // namespace catena
