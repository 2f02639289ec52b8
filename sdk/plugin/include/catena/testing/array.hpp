// Host arrays for tests of plugins. They own their memory, can have any dtype and any address valid
// for it, and have guard bytes on both sides. Floating-point arrays are initialized to NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catena/plugin/describe.hpp"

namespace catena::testing {

using plugin::BFloat16;
using plugin::dtype_of;
using plugin::Float16;
using Dims = std::vector<std::int64_t>;

inline bool is_floating(catena_dtype dtype) {
    return dtype.code == CATENA_CODE_FLOAT || dtype.code == CATENA_CODE_BFLOAT;
}

// The meta of an array in host memory.
catena_meta meta_of(const Dims& shape, catena_dtype dtype);

class Array {
public:
    static constexpr std::size_t guard = 64;  // bytes on each side, and the usual alignment
    static constexpr std::uint8_t usual_guard = 0xa5;

    Array() = default;
    // Floating-point elements are initialized to NaN, others to a pattern. The first element lies
    // `shift` < 64 bytes after an aligned address.
    Array(Dims shape, catena_dtype dtype, std::size_t shift = 0,
          std::uint8_t pattern = usual_guard);
    // A shape and a dtype alone, for calls that compute nothing else.
    static Array without_memory(Dims shape, catena_dtype dtype);
    // Memory without a dtype, such as scratch memory.
    static Array room(std::int64_t bytes, std::uint8_t initial = usual_guard);
    // Arguments as for catena::Array::from(): Array::from<float>({1, 2, 3}, {3}).
    template <class T>
    static Array from(const std::vector<T>& values, Dims shape) {
        Array a(std::move(shape), dtype_of<T>());
        a.need_size(values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            reinterpret_cast<T*>(a.bytes())[i] = values[i];
        return a;
    }
    // Uniform numbers in [low, high).
    template <class T>
    static Array random(Dims shape, unsigned seed, double low = -1, double high = 1) {
        return random(std::move(shape), dtype_of<T>(), seed, low, high);
    }
    static Array random(Dims shape, catena_dtype dtype, unsigned seed, double low = -1,
                        double high = 1);
    static Array constant(Dims shape, catena_dtype dtype, double value);

    explicit operator bool() const { return has_memory() || shape_only_; }
    bool has_memory() const { return chunks_.size() > 0; }
    const Dims& shape() const { return shape_; }
    catena_dtype dtype() const { return dtype_; }
    std::int64_t size() const { return size_; }
    std::size_t nbytes() const { return static_cast<std::size_t>(size_) * dtype_.bits / 8; }
    bool floating() const { return is_floating(dtype_); }
    template <class T>
    T* data() {
        return reinterpret_cast<T*>(has_memory() ? chunks_.lend()[1].bytes + shift_ : nullptr);
    }
    template <class T>
    const T* data() const {
        return reinterpret_cast<const T*>(has_memory() ? chunks_.read()[1].bytes + shift_
                                                       : nullptr);
    }
    template <class T>
    std::vector<T> values() const {
        return std::vector<T>(data<T>(), data<T>() + size_);
    }
    // Reads or writes one element of any dtype as a double.
    double at(std::int64_t i) const;
    void set(std::int64_t i, double value);
    // Reads or writes all elements as doubles.
    std::vector<double> numbers() const;
    void set_numbers(const std::vector<double>& values);
    // Sets all bytes of the elements.
    void fill(std::uint8_t byte);
    Array to(catena_dtype dtype) const;
    Array reshaped(Dims shape) const;
    // A copy at another address, with other guard bytes.
    Array moved(std::size_t shift, std::uint8_t pattern = usual_guard) const;
    // Returns a text about the guard bytes that were overwritten; empty if there are none.
    std::string damage() const;
    bool intact() const { return damage().empty(); }
    // True if shape, dtype and all bits are equal.
    bool operator==(const Array& other) const;

    // The whole memory with guards. The first element lies after the first guard and the shift.
    std::byte* memory() { return chunks_.lend()->bytes; }
    std::size_t memory_bytes() const { return chunks_.size() * sizeof(Chunk); }
    std::size_t shift() const { return shift_; }
    // Valid as long as the array lives and is not assigned to, as data() and memory().
    catena_tensor tensor();
    // Says that pointers of these functions are no longer written to: copies may share the memory.
    void settle() { chunks_.settle(); }
    catena_meta meta() const { return meta_of(shape_, dtype_); }

private:
    struct alignas(guard) Chunk {
        std::byte bytes[guard];
    };
    // Chunks that copies of an array share until one of them may write, unless pointers to them are
    // in use.
    class Chunks {
    public:
        Chunks() = default;
        explicit Chunks(std::size_t n);
        Chunks(const Chunks& other) : first_(other.first_), n_(other.n_) {
            if (other.lent_ && first_ != nullptr) copy();
        }
        Chunks(Chunks&&) = default;
        Chunks& operator=(Chunks other) noexcept {
            first_.swap(other.first_);
            n_ = other.n_;
            lent_ = other.lent_;
            return *this;
        }
        std::size_t size() const { return first_ != nullptr ? n_ : 0; }
        const Chunk* read() const { return first_.get(); }
        Chunk* write() {  // copies shared ones
            if (first_.use_count() > 1) copy();
            return first_.get();
        }
        // Also, they are not shared until settle().
        Chunk* lend() {
            lent_ = true;
            return write();
        }
        void settle() { lent_ = false; }

    private:
        void copy();
        std::shared_ptr<Chunk> first_;
        std::size_t n_ = 0;
        bool lent_ = false;
    };

    void need_size(std::size_t n) const;
    void allocate(std::size_t spare, std::uint8_t initial);
    void take(const Array& other);
    std::byte* bytes() { return has_memory() ? chunks_.write()[1].bytes + shift_ : nullptr; }

    Dims shape_;
    Dims strides_;
    catena_dtype dtype_{};
    std::int64_t size_ = 1;
    std::size_t shift_ = 0;
    std::uint8_t pattern_ = usual_guard;
    bool shape_only_ = false;
    Chunks chunks_;
};
using Arrays = std::vector<Array>;

}  // namespace catena::testing
