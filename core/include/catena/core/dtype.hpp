// Element types: the enum, its names and sizes, and the conversion of single elements.
#pragma once

#include <catena/abi/half.h>
#include <catena/abi/tensor.h>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace catena {

enum class Dtype : std::uint8_t {
    float16,   // IEEE binary16: storage and conversion
    bfloat16,  // upper half of binary32: storage and conversion
    float32,
    float64,
    int32,
    int64,
    uint8,
    bool8,  // one byte, 0 or 1
};
inline constexpr int dtype_count = 8;

constexpr catena_dtype to_abi(Dtype dtype) noexcept {
    constexpr catena_dtype table[dtype_count] = {
        {CATENA_CODE_FLOAT, 16, 1}, {CATENA_CODE_BFLOAT, 16, 1}, {CATENA_CODE_FLOAT, 32, 1},
        {CATENA_CODE_FLOAT, 64, 1}, {CATENA_CODE_INT, 32, 1},    {CATENA_CODE_INT, 64, 1},
        {CATENA_CODE_UINT, 8, 1},   {CATENA_CODE_BOOL, 8, 1}};
    return table[static_cast<int>(dtype)];
}

constexpr bool same(catena_dtype a, catena_dtype b) noexcept {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Returns false if no Dtype has this code.
constexpr bool from_abi(catena_dtype abi, Dtype& out) noexcept {
    for (int i = 0; i < dtype_count; ++i) {
        if (same(to_abi(static_cast<Dtype>(i)), abi)) {
            out = static_cast<Dtype>(i);
            return true;
        }
    }
    return false;
}

constexpr std::int64_t item_size(Dtype dtype) noexcept { return to_abi(dtype).bits / 8; }
constexpr bool is_floating(Dtype dtype) noexcept { return dtype <= Dtype::float64; }

// NumPy's names, such as "float32".
std::string_view name(Dtype dtype) noexcept;
std::string name(catena_dtype dtype);
// Throws DtypeError if no dtype has this name.
Dtype dtype_from_name(std::string_view text);

// float16 and bfloat16 as bits, with conversions that round to nearest even.
struct float16 {
    std::uint16_t bits;
};
struct bfloat16 {
    std::uint16_t bits;
};
constexpr float to_float(float16 value) noexcept { return catena_from_float16(value.bits); }
constexpr float to_float(bfloat16 value) noexcept { return catena_from_bfloat16(value.bits); }
constexpr float16 to_float16(float value) noexcept { return {catena_to_float16(value)}; }
constexpr bfloat16 to_bfloat16(float value) noexcept { return {catena_to_bfloat16(value)}; }

// The C++ types, in the order of Dtype.
template <class... T>
struct TypeList {};
using ElementTypes =
    TypeList<float16, bfloat16, float, double, std::int32_t, std::int64_t, std::uint8_t, bool>;
// The Dtype of a C++ type.
template <class T>
inline constexpr Dtype dtype_of = []<class... E>(TypeList<E...>) {
    static_assert((std::is_same_v<T, E> || ...), "catena has no dtype for this type");
    int i = 0;
    (void)((std::is_same_v<T, E> || (++i, false)) || ...);
    return static_cast<Dtype>(i);
}(ElementTypes());

// body(T()), where T is the C++ type of the dtype.
template <class Body>
decltype(auto) with_type(Dtype dtype, const Body& body) {
    switch (dtype) {
        case Dtype::float16: return body(float16());
        case Dtype::bfloat16: return body(bfloat16());
        case Dtype::float32: return body(float());
        case Dtype::float64: return body(double());
        case Dtype::int32: return body(std::int32_t());
        case Dtype::int64: return body(std::int64_t());
        case Dtype::uint8: return body(std::uint8_t());
        case Dtype::bool8: break;
    }
    return body(bool());
}

// Converts n elements on the host, as a C cast does; to bool: != 0.
void convert(Dtype from, const void* source, Dtype to, void* target, std::int64_t n);

}  // namespace catena
