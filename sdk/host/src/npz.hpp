// .npz files, NumPy's archives of arrays: a zip file of .npy members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

struct NpyArray {
    std::string descr;  // "<f4"
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;  // row-major
};
using Npz = std::map<std::string, NpyArray>;  // names without .npy
// Whether to read the elements of an array of this name, descr and shape.
using Wanted = std::function<bool(const std::string& name, const NpyArray& header)>;

// Fills array from the bytes of a .npy file, without a copy of them. Returns an empty text, or what is
// wrong with it.
std::string parse_npy(std::vector<std::byte> bytes, NpyArray& array);

// Writes by AtomicFile. The same content gives the same bytes. Throws DataError.
void write_npz(const std::filesystem::path& file, const Npz& arrays);

// The members whose names begin with path; others are not read. Throws DataError if the file is
// missing, damaged, has members that overlap or two of one name, or one of those is not .npy data. Which
// dtypes and byte orders it takes is for the caller to say. With wanted, an array that it refuses comes
// without bytes: at most 64 KiB of its member are unpacked, and the checksum is not compared.
Npz read_npz(const std::filesystem::path& file, std::string_view path = {},
             const Wanted& wanted = {});

}  // namespace catena
