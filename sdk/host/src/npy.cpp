// Elements between arrays and .npy members: the same bytes.
#include "npz.hpp"

#include <catena/array_file.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>

#include <algorithm>
#include <cstring>

namespace catena {
namespace {

constexpr const char* descrs[dtype_count] = {"<f2", "|V2", "<f4", "<f8",
                                             "<i4", "<i8", "|u1", "|b1"};

}  // namespace

const char* descr_of(Dtype dtype) noexcept { return descrs[static_cast<int>(dtype)]; }

std::optional<Dtype> dtype_of_descr(std::string_view descr) noexcept {
    const auto* found = std::ranges::find(descrs, descr);
    if (found == std::end(descrs)) return {};
    return static_cast<Dtype>(found - descrs);
}

bool is_text(const NpyArray& npy) noexcept {
    return npy.descr.starts_with("|S") && npy.shape.empty();
}

std::uint64_t text_size(const NpyArray& npy) { return std::stoull(npy.descr.substr(2)); }

std::string text_of(const NpyArray& npy) {
    const std::string_view text(reinterpret_cast<const char*>(npy.bytes.data()), npy.bytes.size());
    return std::string(text.substr(0, text.find_last_not_of('\0') + 1));
}

NpyArray from_text(std::string_view text) {
    NpyArray npy{"", {}, std::vector<std::byte>(std::max<std::size_t>(text.size(), 1))};
    npy.descr = fmt::format("|S{}", npy.bytes.size());
    std::ranges::copy(std::as_bytes(std::span(text)), npy.bytes.begin());
    return npy;
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
    return with_type(dtype, [&]<class T>(T) {
        // std::vector<bool> has no elements in memory.
        using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
        std::vector<Element> values(static_cast<std::size_t>(shape.size()));
        if (!values.empty()) std::memcpy(values.data(), npy.bytes.data(), npy.bytes.size());
        return Array::from(values, shape, device).astype(dtype);
    });
}

std::map<std::string, Array> load_arrays(const std::filesystem::path& file, Device device,
                                         std::string_view path) {
    return naming_file("load_arrays", file, [&] {
        std::map<std::string, Array> arrays;
        for (const auto& [name, npy] : read_stored(file, path)) {
            if (is_text(npy)) continue;
            const auto dtype = dtype_of_descr(npy.descr);
            if (!dtype)
                fail<DataError>(
                    "[load_arrays] {}: {}: expected dtypes float16, bfloat16 (as |V2), float32, "
                    "float64, int32, int64, uint8 or bool, got '{}'",
                    file.string(), name, npy.descr);
            arrays[name] = to_array(npy, *dtype, device);
        }
        return arrays;
    });
}

std::map<std::string, std::string> load_texts(const std::filesystem::path& file,
                                              std::string_view path) {
    return naming_file("load_texts", file, [&] {
        std::map<std::string, std::string> texts;
        for (const auto& [name, npy] : read_stored(file, path)) {
            if (is_text(npy)) texts[name] = text_of(npy);
        }
        return texts;
    });
}

void save_arrays(const std::filesystem::path& file, const std::map<std::string, Array>& arrays) {
    naming_file("save_arrays", file, [&] {
        Npz npz;
        for (const auto& [name, array] : arrays) {
            if (array) npz[name] = to_npy(array);
        }
        write_stored(file, npz);
    });
}

}  // namespace catena
