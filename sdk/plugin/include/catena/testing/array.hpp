// Host arrays for tests of plugins: owned, guarded on both sides, filled with NaN at first.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "catena/plugin/describe.hpp"
#include "catena/plugin/error.hpp"

namespace catena::testing {

using plugin::BFloat16;
using plugin::dtype_of;
using plugin::Float16;
using Dims = std::vector<std::int64_t>;

class Array {
public:
    Array() = default;
    // Floats start as NaN, the rest as a pattern.
    Array(Dims shape, catena_dtype dtype) : shape_(std::move(shape)), dtype_(dtype) {
        strides_.resize(shape_.size());
        for (std::size_t d = shape_.size(); d-- > 0; size_ *= shape_[d]) strides_[d] = size_;
        chunks_.assign(nbytes() / guard + 3, Chunk());
        if (dtype.code == CATENA_CODE_FLOAT || dtype.code == CATENA_CODE_BFLOAT)
            std::memset(bytes(), 0xff, nbytes());
    }
    template <class T>
    static Array of(Dims shape, const std::vector<T>& values) {
        Array a(std::move(shape), dtype_of<T>());
        if (static_cast<std::int64_t>(values.size()) != a.size_)
            throw std::logic_error("Array::of: wrong number of values");
        for (std::size_t i = 0; i < values.size(); ++i) a.data<T>()[i] = values[i];
        return a;
    }
    // Uniform numbers in [low, high).
    template <class T>
    static Array random(Dims shape, unsigned seed, double low = -1, double high = 1) {
        Array a(std::move(shape), dtype_of<T>());
        std::mt19937 engine(seed);
        std::uniform_real_distribution<double> draw(low, high);
        for (std::int64_t i = 0; i < a.size_; ++i) a.data<T>()[i] = static_cast<T>(draw(engine));
        return a;
    }

    explicit operator bool() const { return !chunks_.empty(); }
    const Dims& shape() const { return shape_; }
    catena_dtype dtype() const { return dtype_; }
    std::int64_t size() const { return size_; }
    std::size_t nbytes() const { return static_cast<std::size_t>(size_) * dtype_.bits / 8; }
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
    // Any dtype of numbers, as double.
    double at(std::int64_t i) const {
        if (dtype_.code == CATENA_CODE_FLOAT && dtype_.bits == 32) return data<float>()[i];
        if (dtype_.code == CATENA_CODE_FLOAT && dtype_.bits == 64) return data<double>()[i];
        if (dtype_.code == CATENA_CODE_INT && dtype_.bits == 32) return data<std::int32_t>()[i];
        if (dtype_.code == CATENA_CODE_INT) return static_cast<double>(data<std::int64_t>()[i]);
        return data<std::uint8_t>()[i];
    }
    void set(std::int64_t i, double value) {
        if (dtype_.bits == 32) data<float>()[i] = static_cast<float>(value);
        else data<double>()[i] = value;
    }
    bool floating() const { return dtype_.code == CATENA_CODE_FLOAT && dtype_.bits >= 32; }
    Array to(catena_dtype dtype) const {
        Array a(shape_, dtype);
        for (std::int64_t i = 0; i < size_; ++i) a.set(i, at(i));
        return a;
    }
    Array reshaped(Dims shape) const {
        Array a(std::move(shape), dtype_);
        if (nbytes() > 0) std::memcpy(a.bytes(), const_cast<Array*>(this)->bytes(), nbytes());
        return a;
    }
    // Nobody wrote before or behind the elements.
    bool intact() const {
        const std::byte* first = const_cast<Array*>(this)->bytes();
        for (std::size_t i = 1; i <= guard; ++i)
            if (first[-static_cast<std::ptrdiff_t>(i)] != pattern ||
                first[nbytes() + i - 1] != pattern)
                return false;
        return true;
    }
    bool operator==(const Array& other) const {
        if (chunks_.empty() || other.chunks_.empty())
            return chunks_.empty() == other.chunks_.empty();
        return shape_ == other.shape_ && dtype_.bits == other.dtype_.bits &&
               std::memcmp(data<char>(), other.data<char>(), nbytes()) == 0;
    }
    // Valid as long as the array lives and is not assigned to.
    catena_tensor tensor() {
        catena_tensor t = {};
        t.struct_size = sizeof t;
        t.flags = CATENA_TENSOR_CONTIGUOUS;
        t.dl = {
            bytes(),         1, 0, static_cast<std::int32_t>(shape_.size()), dtype_, shape_.data(),
            strides_.data(), 0};
        t.nbytes = nbytes();
        t.align_log2 = 6;
        return t;
    }
    catena_meta meta() const {
        catena_meta m;
        m.struct_size = sizeof m;
        m.ndim = static_cast<std::int32_t>(shape_.size());
        m.dtype = dtype_;
        m.device_type = 1;
        std::copy(shape_.begin(), shape_.end(), m.shape);
        return m;
    }

private:
    static constexpr std::size_t guard = 64;
    static constexpr std::byte pattern{0xa5};
    struct alignas(guard) Chunk {
        Chunk() { std::fill_n(bytes, guard, pattern); }
        std::byte bytes[guard];
    };

    std::byte* bytes() { return chunks_.empty() ? nullptr : chunks_[0].bytes + guard; }

    Dims shape_;
    Dims strides_;
    catena_dtype dtype_{};
    std::int64_t size_ = 1;
    std::vector<Chunk> chunks_;
};

}  // namespace catena::testing
