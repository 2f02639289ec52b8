// Reads and writes files of named arrays: .npz, NumPy's zip archives of .npy members, and .safetensors, which
// has a header in JSON and the arrays' bytes.
#pragma once

#include <catena/core/array.hpp>

#include <filesystem>
#include <map>
#include <optional>

namespace catena {

struct NpyArray {
    std::string descr;  // "<f4"
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;  // row-major
};
using Npz = std::map<std::string, NpyArray>;  // names without .npy
// Whether to read the elements of an array with this name, descr and shape.
using Wanted = std::function<bool(const std::string& name, const NpyArray& header)>;

// Fills array from a .npy file's bytes, which it takes over. Returns "", or what is wrong with them.
std::string parse_npy(std::vector<std::byte> bytes, NpyArray& array);

// Writes with AtomicFile. The same content gives the same bytes. Throws DataError.
void write_npz(const std::filesystem::path& file, const Npz& arrays);

// Returns the members whose names begin with path, and reads no others. Throws DataError if the file is
// missing or damaged, if members overlap, or if a member that is read is not .npy data or has a repeated
// name. The caller checks dtypes and byte orders. If wanted() returns false for an array, it is returned
// without bytes: at most 64 KiB of its member are unpacked, and the checksum is not compared.
Npz read_npz(const std::filesystem::path& file, std::string_view path = {},
             const Wanted& wanted = {});

// Returns NumPy's name of a dtype, such as "<f4". bfloat16, which NumPy lacks, is "|V2".
const char* descr_of(Dtype dtype) noexcept;
// Returns nullopt if catena has no such dtype.
std::optional<Dtype> dtype_of_descr(std::string_view descr) noexcept;

// Texts are NumPy's byte strings, such as "|S5"; an empty one takes a byte. Trailing zeros are padding.
bool is_text(const NpyArray& npy) noexcept;
std::uint64_t text_size(const NpyArray& npy);  // with trailing zeros; does not need npy.bytes
std::string text_of(const NpyArray& npy);
NpyArray from_text(std::string_view text);

NpyArray to_npy(const Array& array);
// npy must have elements of this dtype. The default device is Device::current().
Array to_array(const NpyArray& npy, Dtype dtype, Device device);

// Writes with AtomicFile, in the order of the names. Texts ("|S...") are written to __metadata__, the only
// place for texts in the format. The same content gives the same bytes. Throws DataError.
// Format: https://huggingface.co/docs/safetensors, as of its version 0.4.
void write_safetensors(const std::filesystem::path& file, const Npz& arrays);

// Returns the arrays and texts whose names begin with path, from a file of any program. Elements of dtypes
// that catena lacks have descr "". Throws DataError if the file is missing or violates the format: each
// byte of data must belong to exactly one array, and each key must occur once in the header. If wanted()
// returns false for an array or a text, it is returned without bytes.
Npz read_safetensors(const std::filesystem::path& file, std::string_view path = {},
                     const Wanted& wanted = {});

// Use .safetensors if the name of the file ends so, else .npz.
void write_stored(const std::filesystem::path& file, const Npz& arrays);
Npz read_stored(const std::filesystem::path& file, std::string_view path = {},
                const Wanted& wanted = {});

}  // namespace catena
