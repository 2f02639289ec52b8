// Host arrays for tests of plugins: of any dtype, owned, guarded on both sides, filled with NaN at
// first; at any address that their dtype allows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "catena/plugin/describe.hpp"
#include "catena/plugin/error.hpp"
#include "catena/plugin/half.hpp"

namespace catena::testing {

using plugin::BFloat16;
using plugin::dtype_of;
using plugin::Float16;
using Dims = std::vector<std::int64_t>;

namespace detail {

template <class T>
double to_double(T value) {
    if constexpr (std::is_class_v<T>) return plugin::to_float(value);
    else return static_cast<double>(value);
}
template <class T>
T from_double(double value) {
    if constexpr (std::is_class_v<T>) return plugin::to_half<T>(static_cast<float>(value));
    else if constexpr (std::is_same_v<T, bool>) return value != 0;
    else return static_cast<T>(value);
}

// body(T()) for the C++ type of a dtype.
template <class Body>
auto with_type(catena_dtype dtype, const Body& body) {
    using plugin::same;
    if (same(dtype, dtype_of<float>())) return body(float());
    if (same(dtype, dtype_of<double>())) return body(double());
    if (same(dtype, dtype_of<Float16>())) return body(Float16());
    if (same(dtype, dtype_of<BFloat16>())) return body(BFloat16());
    if (same(dtype, dtype_of<std::int8_t>())) return body(std::int8_t());
    if (same(dtype, dtype_of<std::int16_t>())) return body(std::int16_t());
    if (same(dtype, dtype_of<std::int32_t>())) return body(std::int32_t());
    if (same(dtype, dtype_of<std::int64_t>())) return body(std::int64_t());
    if (same(dtype, dtype_of<std::uint8_t>())) return body(std::uint8_t());
    if (same(dtype, dtype_of<std::uint16_t>())) return body(std::uint16_t());
    if (same(dtype, dtype_of<std::uint32_t>())) return body(std::uint32_t());
    if (same(dtype, dtype_of<std::uint64_t>())) return body(std::uint64_t());
    if (same(dtype, dtype_of<bool>())) return body(bool());
    throw std::logic_error("an array of " + plugin::text_of(dtype));
}

}  // namespace detail

inline bool is_floating(catena_dtype dtype) {
    return dtype.code == CATENA_CODE_FLOAT || dtype.code == CATENA_CODE_BFLOAT;
}

class Array {
public:
    static constexpr std::size_t guard = 64;  // bytes on each side, and the usual alignment
    static constexpr std::uint8_t usual_guard = 0xa5;

    Array() = default;
    // Floats start as NaN, the rest as a pattern. The first element lies `shift` < 64 bytes behind an
    // aligned address.
    Array(Dims shape, catena_dtype dtype, std::size_t shift = 0, std::uint8_t pattern = usual_guard)
        : shape_(std::move(shape)), dtype_(dtype), shift_(shift), pattern_(pattern) {
        strides_.resize(shape_.size());
        for (std::size_t d = shape_.size(); d-- > 0; size_ = plugin::times(size_, shape_[d]))
            strides_[d] = size_;
        chunks_.assign((nbytes() + slack()) / guard + 4, Chunk(pattern));
        if (is_floating(dtype)) fill(0xff);
    }
    // Memory without a dtype, as scratch is.
    static Array room(std::int64_t bytes) {
        Array a;
        a.shape_ = {bytes};
        a.dtype_ = dtype_of<std::uint8_t>();
        a.strides_ = {1};
        a.size_ = bytes;
        a.chunks_.assign(a.nbytes() / guard + 4, Chunk(usual_guard));
        return a;
    }
    // In the order of catena::Array::from(): Array::from<float>({1, 2, 3}, {3}).
    template <class T>
    static Array from(const std::vector<T>& values, Dims shape) {
        Array a(std::move(shape), dtype_of<T>());
        if (static_cast<std::int64_t>(values.size()) != a.size_)
            throw std::logic_error("Array::from: wrong number of values");
        for (std::size_t i = 0; i < values.size(); ++i) a.data<T>()[i] = values[i];
        return a;
    }
    // Uniform numbers in [low, high).
    template <class T>
    static Array random(Dims shape, unsigned seed, double low = -1, double high = 1) {
        Array a(std::move(shape), dtype_of<T>());
        std::mt19937 engine(seed);
        std::uniform_real_distribution<double> draw(low, high);
        for (std::int64_t i = 0; i < a.size_; ++i)
            a.data<T>()[i] = detail::from_double<T>(draw(engine));
        return a;
    }
    static Array constant(Dims shape, catena_dtype dtype, double value) {
        Array a(std::move(shape), dtype);
        for (std::int64_t i = 0; i < a.size_; ++i) a.set(i, value);
        return a;
    }
    // What a host makes of a view of its memory with any strides (in elements).
    static Array packed(const void* base, Dims shape, const Dims& strides, catena_dtype dtype,
                        std::size_t shift) {
        Array a(std::move(shape), dtype, shift);
        const std::size_t bytes = dtype.bits / 8;
        for (std::int64_t i = 0; i < a.size_; ++i) {
            std::int64_t at = 0;
            std::int64_t rest = i;
            for (std::size_t d = a.shape_.size(); d-- > 0; rest /= a.shape_[d])
                at += rest % a.shape_[d] * strides[d];
            std::memcpy(a.bytes() + static_cast<std::size_t>(i) * bytes,
                        static_cast<const std::byte*>(base) + at * dtype.bits / 8, bytes);
        }
        return a;
    }

    explicit operator bool() const { return !chunks_.empty(); }
    const Dims& shape() const { return shape_; }
    catena_dtype dtype() const { return dtype_; }
    std::int64_t size() const { return size_; }
    std::size_t nbytes() const { return static_cast<std::size_t>(size_) * dtype_.bits / 8; }
    bool floating() const { return is_floating(dtype_); }
    template <class T>
    T* data() {
        return reinterpret_cast<T*>(bytes());
    }
    template <class T>
    const T* data() const {
        return const_cast<Array*>(this)->data<T>();
    }
    template <class T>
    std::vector<T> values() const {
        return std::vector<T>(data<T>(), data<T>() + size_);
    }
    // One element of any dtype, as double.
    double at(std::int64_t i) const {
        return detail::with_type(dtype_,
                                 [&]<class T>(T) { return detail::to_double(data<T>()[i]); });
    }
    void set(std::int64_t i, double value) {
        detail::with_type(dtype_,
                          [&]<class T>(T) { data<T>()[i] = detail::from_double<T>(value); });
    }
    // All elements' bytes.
    void fill(std::uint8_t byte) {
        if (nbytes() > 0) std::memset(bytes(), byte, nbytes());
    }
    Array to(catena_dtype dtype) const {
        if (plugin::same(dtype, dtype_)) return moved(0);  // large integers are no double
        Array a(shape_, dtype);
        for (std::int64_t i = 0; i < size_; ++i) a.set(i, at(i));
        return a;
    }
    Array reshaped(Dims shape) const {
        Array a(std::move(shape), dtype_);
        a.take(*this);
        return a;
    }
    // The same elements at another address, between other guards.
    Array moved(std::size_t shift, std::uint8_t pattern = usual_guard) const {
        Array a(shape_, dtype_, shift, pattern);
        a.take(*this);
        return a;
    }
    // Where somebody wrote before or behind the elements; empty: nobody did.
    std::string damage() const {
        const auto* all = reinterpret_cast<const std::uint8_t*>(chunks_.data());
        const std::uint8_t* first = data<std::uint8_t>();
        const std::uint8_t* last = first + nbytes();
        const std::uint8_t* end = all + chunks_.size() * sizeof(Chunk);
        const auto whole = [&](const std::uint8_t* from, const std::uint8_t* to) {
            const auto n = static_cast<std::size_t>(to - from);
            return n == 0 || (*from == pattern_ && std::memcmp(from, from + 1, n - 1) == 0);
        };
        const auto foreign = [&](std::uint8_t b) { return b != pattern_; };
        const auto text = [](std::ptrdiff_t near, std::ptrdiff_t far, const char* where) {
            const std::string bytes = near == far ? "byte " : "bytes ";
            return bytes + std::to_string(near) +
                   (near == far ? "" : " to " + std::to_string(far)) + where;
        };
        if (!whole(last, end)) {
            const auto* from = std::find_if(last, end, foreign);
            const auto* to = end;
            while (!foreign(to[-1])) --to;
            // As many bytes as if it had been written as elements of another size.
            std::string as;
            for (const std::int64_t size : {2, 4, 8})
                if (8 * size > dtype_.bits && to - first > size * (size_ - 1) &&
                    to - first <= size * size_)
                    as = ", as if its elements had " + std::to_string(size) + " bytes";
            return text(from - last + 1, to - last, " behind its end") + as;
        }
        if (!whole(all, first)) {
            const auto* from = std::find_if(all, first, foreign);
            const auto* to = first;
            while (!foreign(to[-1])) --to;
            return text(first - to + 1, first - from, " before its beginning");
        }
        return {};
    }
    bool intact() const { return damage().empty(); }
    bool operator==(const Array& other) const {
        if (chunks_.empty() || other.chunks_.empty())
            return chunks_.empty() == other.chunks_.empty();
        return shape_ == other.shape_ && plugin::same(dtype_, other.dtype_) &&
               std::memcmp(data<char>(), other.data<char>(), nbytes()) == 0;
    }
    // All of it, guards included. The first element lies behind the first guard and the shift.
    std::byte* memory() { return chunks_.data()->bytes; }
    std::size_t memory_bytes() const { return chunks_.size() * sizeof(Chunk); }
    std::size_t shift() const { return shift_; }
    // Valid as long as the array lives and is not assigned to.
    catena_tensor tensor() {
        const auto alignment = static_cast<std::uint32_t>(__builtin_ctzll(shift_ | guard));
        catena_tensor t = {};
        t.struct_size = sizeof t;
        t.flags = CATENA_TENSOR_CONTIGUOUS;
        t.dl = {chunks_.data() + 1,
                1,
                0,
                static_cast<std::int32_t>(shape_.size()),
                dtype_,
                shape_.data(),
                strides_.data(),
                shift_};
        t.nbytes = nbytes();
        t.align_log2 = alignment;
        return t;
    }
    catena_meta meta() const {
        catena_meta m = {};
        m.struct_size = sizeof m;
        m.ndim = static_cast<std::int32_t>(shape_.size());
        m.dtype = dtype_;
        m.device_type = 1;
        std::copy(shape_.begin(), shape_.end(), m.shape);
        return m;
    }

private:
    struct alignas(guard) Chunk {
        explicit Chunk(std::uint8_t pattern) { std::memset(bytes, pattern, guard); }
        std::byte bytes[guard];
    };

    void take(const Array& other) {
        if (nbytes() != other.nbytes()) throw std::logic_error("Array: other bytes");
        if (nbytes() > 0) std::memcpy(bytes(), other.data<char>(), nbytes());
    }
    // Behind the elements, so that a kernel that takes them for wider ones is found out and does no
    // harm.
    std::size_t slack() const {
        const std::size_t widest = 8 * static_cast<std::size_t>(size_);
        return widest > nbytes() ? widest - nbytes() : 0;
    }
    std::byte* bytes() { return chunks_.empty() ? nullptr : chunks_[1].bytes + shift_; }

    Dims shape_;
    Dims strides_;
    catena_dtype dtype_{};
    std::int64_t size_ = 1;
    std::size_t shift_ = 0;
    std::uint8_t pattern_ = usual_guard;
    std::vector<Chunk> chunks_;
};

namespace detail {

inline Array zeros_like(const Array& a) { return Array::constant(a.shape(), a.dtype(), 0); }

}  // namespace detail

}  // namespace catena::testing
