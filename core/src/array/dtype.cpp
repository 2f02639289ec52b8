// Names of dtypes and conversion of elements on the host.
#include <catena/core/dtype.hpp>

#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>

#include <fmt/format.h>

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

template <class To, class From>
To narrow(From value) {
    constexpr bool half = std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>;
    if constexpr (half && !std::is_same_v<From, float>) {
        return narrow<To>(catena_to_float_odd(static_cast<double>(value)));
    } else if constexpr (std::is_same_v<To, float16>) return to_float16(value);
    else if constexpr (std::is_same_v<To, bfloat16>) return to_bfloat16(value);
    else if constexpr (std::is_same_v<To, bool>) return value != From(0);
    else return static_cast<To>(value);
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

void convert(Dtype from, const void* source, Dtype to, void* target, std::int64_t n) {
    if (n == 0) return;
    if (from == to) {
        std::memcpy(target, source, static_cast<std::size_t>(n * item_size(from)));
        return;
    }
    with_type(from, [&]<class From>(From) {
        with_type(to, [&]<class To>(To) {
            const auto* in = static_cast<const From*>(source);
            auto* out = static_cast<To*>(target);
            for (std::int64_t i = 0; i < n; ++i) out[i] = narrow<To>(widen(in[i]));
        });
    });
}

}  // namespace catena
