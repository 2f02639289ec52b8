// Names of dtypes and conversion of elements on the host.
#include <catena/core/dtype.hpp>

#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace catena {
namespace {

constexpr std::string_view names[dtype_count] = {"float16", "bfloat16", "float32", "float64",
                                                 "int32",   "int64",    "uint8",   "bool"};

// The value of an element in a type wide enough for arithmetic.
template <class T>
T widen(T value) {
    return value;
}
float widen(float16 value) { return to_float(value); }
float widen(bfloat16 value) { return to_float(value); }

// Rounds to odd, so that rounding once more, to a half, sees what was dropped here.
float to_float_odd(double value) {
    const auto nearest = static_cast<float>(value);
    if (nearest == value || std::isnan(value)) return nearest;
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
    return std::bit_cast<float>(bits | 1u);
}

template <class To, class From>
To narrow(From value) {
    constexpr bool half = std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>;
    if constexpr (half && !std::is_same_v<From, float>) {
        return narrow<To>(to_float_odd(static_cast<double>(value)));
    } else if constexpr (std::is_same_v<To, float16>) return to_float16(value);
    else if constexpr (std::is_same_v<To, bfloat16>) return to_bfloat16(value);
    else if constexpr (std::is_same_v<To, bool>) return value != From(0);
    else return static_cast<To>(value);
}

template <class Visitor>
void visit(Dtype dtype, Visitor&& visitor) {
    switch (dtype) {
        case Dtype::float16: return visitor(float16{});
        case Dtype::bfloat16: return visitor(bfloat16{});
        case Dtype::float32: return visitor(float{});
        case Dtype::float64: return visitor(double{});
        case Dtype::int32: return visitor(std::int32_t{});
        case Dtype::int64: return visitor(std::int64_t{});
        case Dtype::uint8: return visitor(std::uint8_t{});
        case Dtype::bool8: return visitor(bool{});
    }
}

}  // namespace

std::string_view name(Dtype dtype) noexcept { return names[static_cast<int>(dtype)]; }

std::string name(catena_dtype abi) {
    Dtype dtype;
    if (from_abi(abi, dtype)) return std::string(name(dtype));
    return fmt::format("dtype(code {}, {} bits, {} lanes)", abi.code, abi.bits, abi.lanes);
}

Dtype dtype_from_name(std::string_view text) {
    for (int i = 0; i < dtype_count; ++i) {
        if (names[i] == text) return static_cast<Dtype>(i);
    }
    throw DtypeError(fmt::format("[dtype] name: expected one of {}, got '{}'",
                                 fmt::join(names, " "), beginning(text)));
}

float to_float(float16 value) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
    const std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = value.bits & 0x3ffu;
    if (exponent == 0) {  // zero and subnormal: mantissa * 2^-24
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    const std::uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + 112u;
    return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

float16 to_float16(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};   // NaN
    if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // overflow
    if (magnitude < 0x38800000u) {  // subnormal: round to a multiple of 2^-24
        const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
        return {
            static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)))};
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

bfloat16 to_bfloat16(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
    }
    return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

void convert(Dtype from, const void* source, Dtype to, void* target, std::int64_t n) {
    if (n == 0) return;
    if (from == to) {
        std::memcpy(target, source, static_cast<std::size_t>(n * item_size(from)));
        return;
    }
    visit(from, [&](auto from_tag) {
        visit(to, [&](auto to_tag) {
            using From = decltype(from_tag);
            using To = decltype(to_tag);
            const auto* in = static_cast<const From*>(source);
            auto* out = static_cast<To*>(target);
            for (std::int64_t i = 0; i < n; ++i) out[i] = narrow<To>(widen(in[i]));
        });
    });
}

}  // namespace catena
