// Arrays by name in .npz files, which NumPy reads and writes.
#pragma once

#include <catena/core/array.hpp>

#include <filesystem>
#include <map>
#include <string>

namespace catena {

// Every array of a file, on a device (none: Device::current()), in the file's dtypes: float16,
// float32, float64, int32, int64, uint8 or bool. Row-major and column-major files are read alike.
// Throws DataError if the file is missing or damaged or has an array of another dtype.
std::map<std::string, Array> load_arrays(const std::filesystem::path& file, Device device = {});

// Writes arrays under their names; empty ones are left out. The file is written under a temporary
// name, flushed and renamed. Throws DataError.
void save_arrays(const std::filesystem::path& file, const std::map<std::string, Array>& arrays);

}  // namespace catena
