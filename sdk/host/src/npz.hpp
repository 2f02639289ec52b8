// Files of named arrays: .npz, NumPy's zip archives of .npy members, and .safetensors, a header in JSON
// and the arrays' bytes.
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

// NumPy's name of a dtype: "<f4". bfloat16, which NumPy lacks, is "|V2".
const char* descr_of(Dtype dtype) noexcept;
// Empty if catena has no such dtype.
std::optional<Dtype> dtype_of_descr(std::string_view descr) noexcept;

// Texts, as NumPy has them: bytes "|S5"; an empty one takes a byte. A text does not end in '\0'.
bool is_text(const NpyArray& npy) noexcept;
std::uint64_t text_size(const NpyArray& npy);  // with zeros at the end; also without npy's bytes
std::string text_of(const NpyArray& npy);
NpyArray from_text(std::string_view text);

NpyArray to_npy(const Array& array);
// npy must hold elements of dtype; device: none means Device::current().
Array to_array(const NpyArray& npy, Dtype dtype, Device device);

// Writes by AtomicFile, in the order of the names. Texts (elements "|S...") go into __metadata__, where
// the format has its texts. The same content gives the same bytes. Throws DataError.
// Format: https://huggingface.co/docs/safetensors, as of its version 0.4.
void write_safetensors(const std::filesystem::path& file, const Npz& arrays);

// What write_safetensors() wrote, or others did: arrays whose names begin with path, and texts.
// Elements of dtypes that catena lacks have descr "". Throws DataError if the file is missing or is
// not as the format wants it: no byte unused, none used twice, each key of the header once. With
// wanted, an array or a text that it refuses comes without bytes.
Npz read_safetensors(const std::filesystem::path& file, std::string_view path = {},
                     const Wanted& wanted = {});

// NAME.safetensors is that format, every other name is .npz.
void write_stored(const std::filesystem::path& file, const Npz& arrays);
Npz read_stored(const std::filesystem::path& file, std::string_view path = {},
                const Wanted& wanted = {});

}  // namespace catena
