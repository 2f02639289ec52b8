// Elements between arrays and .npy members: the same bytes.
#include "npy.hpp"

#include <catena/array_file.hpp>
#include <catena/data_error.hpp>

#include <fmt/format.h>

#include <cstring>

namespace catena {
namespace {

constexpr const char* descrs[dtype_count] = {"<f2", "|V2", "<f4", "<f8",
                                             "<i4", "<i8", "|u1", "|b1"};

}  // namespace

const char* descr_of(Dtype dtype) noexcept { return descrs[static_cast<int>(dtype)]; }

bool dtype_of_descr(std::string_view descr, Dtype& dtype) noexcept {
    for (int i = 0; i < dtype_count; ++i) {
        if (descr != descrs[i]) continue;
        dtype = static_cast<Dtype>(i);
        return true;
    }
    return false;
}

NpyArray to_npy(const Array& array) {
    const Shape shape = array.shape();
    NpyArray npy{descr_of(array.dtype()),
                 {shape.begin(), shape.end()},
                 std::vector<std::byte>(static_cast<std::size_t>(array.nbytes()))};
    array.to_host(array.dtype(), npy.bytes.data());
    return npy;
}

Array to_array(const NpyArray& npy, Dtype dtype, Device device) {
    const Shape shape{std::span<const std::int64_t>(npy.shape)};
    const auto make = [&]<class T>(T*) {
        std::vector<T> values(static_cast<std::size_t>(shape.size()));
        if (!values.empty()) std::memcpy(values.data(), npy.bytes.data(), npy.bytes.size());
        return Array::from(values, shape, device);
    };
    switch (dtype) {
        case Dtype::float16: return make(static_cast<float16*>(nullptr));
        case Dtype::bfloat16: return make(static_cast<bfloat16*>(nullptr));
        case Dtype::float32: return make(static_cast<float*>(nullptr));
        case Dtype::float64: return make(static_cast<double*>(nullptr));
        case Dtype::int32: return make(static_cast<std::int32_t*>(nullptr));
        case Dtype::int64: return make(static_cast<std::int64_t*>(nullptr));
        case Dtype::uint8: return make(static_cast<std::uint8_t*>(nullptr));
        case Dtype::bool8: break;
    }
    // std::vector<bool> has no elements in memory.
    const Array bytes = to_array(npy, Dtype::uint8, device);
    return bytes.astype(Dtype::bool8);
}

std::map<std::string, Array> load_arrays(const std::filesystem::path& file, Device device) {
    std::map<std::string, Array> arrays;
    for (const auto& [name, npy] : read_npz(file)) {
        Dtype dtype{};
        if (!dtype_of_descr(npy.descr, dtype)) {
            throw DataError(
                fmt::format("[load_arrays] {}: {}: expected dtypes float16, bfloat16 (as |V2), "
                            "float32, float64, "
                            "int32, int64, uint8 or bool, got '{}'",
                            file.string(), name, npy.descr));
        }
        arrays[name] = to_array(npy, dtype, device);
    }
    return arrays;
}

void save_arrays(const std::filesystem::path& file, const std::map<std::string, Array>& arrays) {
    Npz npz;
    for (const auto& [name, array] : arrays) {
        if (array) npz[name] = to_npy(array);
    }
    write_npz(file, npz);
}

}  // namespace catena
