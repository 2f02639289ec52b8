// Errors, shapes and dtypes: their texts, and the conversion of elements on the host.
#include <catena/core/dtype.hpp>
#include <catena/core/shape.hpp>
#include <catena/core/tables.hpp>

#include <algorithm>
#include <cstring>

namespace catena {

std::string one_line(std::string text) {
    const auto control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
    std::ranges::replace_if(text, control, '?');
    return text;
}

std::string beginning(std::string_view text) {
    std::size_t n = 200;
    if (text.size() <= n) return std::string(text);
    while (n > 0 && (text[n] & 0xc0) == 0x80) --n;
    return std::string(text.substr(0, n)) + "...";
}

namespace {

template <catena_status... Known>
void throw_known(catena_status status, const std::string& text) {
    (..., (status == Known ? throw ErrorOf<Known>(text) : void()));
}

}  // namespace

void throw_status(catena_status status, const std::string& text) {
    throw_known<CATENA_E_INVALID, CATENA_E_DTYPE, CATENA_E_SHAPE, CATENA_E_UNSUPPORTED,
                CATENA_E_NOMEM, CATENA_E_DEVICE, CATENA_E_INTERNAL, CATENA_E_NOT_DIFFERENTIABLE,
                CATENA_E_VALUE>(status, text);
    throw Error(text + " (status " + std::to_string(status) + ")", status);
}

Shape::Shape(std::span<const std::int64_t> extents) : ndim_(static_cast<int>(extents.size())) {
    if (extents.size() > CATENA_MAX_NDIM) {
        raise<ShapeError>("[shape] rank: expected at most {}, got {}",
                          static_cast<int>(CATENA_MAX_NDIM), extents.size());
    }
    for (std::int64_t extent : extents) {
        if (extent < 0) {
            raise<ShapeError>("[shape] extents: expected none below 0, got ({})",
                              fmt::join(extents, ", "));
        }
    }
    std::copy(extents.begin(), extents.end(), extents_);
}

std::int64_t Shape::size() const noexcept {
    std::int64_t size = 1;
    for (std::int64_t extent : *this) size *= extent;
    return size;
}

bool Shape::operator==(const Shape& other) const noexcept {
    return std::equal(begin(), end(), other.begin(), other.end());
}

std::string shape_to_string(const std::int64_t* extents, int ndim) {
    return fmt::format("({}{})", fmt::join(extents, extents + ndim, ", "), ndim == 1 ? "," : "");
}

std::string to_string(const Shape& shape) { return shape_to_string(shape.data(), shape.ndim()); }

namespace {

constexpr std::string_view dtype_names[dtype_count] = {"float16", "bfloat16", "float32", "float64",
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

std::string_view name(Dtype dtype) noexcept { return dtype_names[static_cast<int>(dtype)]; }

std::string name(catena_dtype abi) {
    Dtype dtype;
    if (from_abi(abi, dtype)) return std::string(name(dtype));
    return fmt::format("dtype(code {}, {} bits, {} lanes)", abi.code, abi.bits, abi.lanes);
}

Dtype dtype_from_name(std::string_view text) {
    for (int i = 0; i < dtype_count; ++i)
        if (dtype_names[i] == text) return static_cast<Dtype>(i);
    raise<DtypeError>("[dtype] name: expected one of {}, got '{}'", fmt::join(dtype_names, " "),
                      beginning(text));
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
