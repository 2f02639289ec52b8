// Arrays as members of .npz files.
#pragma once

#include "npz.hpp"

#include <catena/core/array.hpp>

namespace catena {

// NumPy's name of a dtype: "<f4". bfloat16, which NumPy lacks, is "|V2".
const char* descr_of(Dtype dtype) noexcept;
// False if catena has no such dtype.
bool dtype_of_descr(std::string_view descr, Dtype& dtype) noexcept;

// Texts, as NumPy has them: bytes "|S5"; an empty one takes a byte. A text does not end in '\0'.
bool is_text(const NpyArray& npy) noexcept;
std::uint64_t text_size(const NpyArray& npy);  // with zeros at the end; also without npy's bytes
std::string text_of(const NpyArray& npy);
NpyArray from_text(std::string_view text);

NpyArray to_npy(const Array& array);
// npy must hold elements of dtype; device: none means Device::current().
Array to_array(const NpyArray& npy, Dtype dtype, Device device);

}  // namespace catena
