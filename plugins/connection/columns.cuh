// Rows of a matrix that lanes of a block share out among them, on CUDA; and scratch in parts.
#pragma once

#include <catena/plugin/cuda/index.hpp>
#include <catena/plugin/cuda/launch.cuh>
#include <catena/plugin/cuda/pack.cuh>

namespace catena::plugins {

using namespace catena::plugin;

// Parts of the scratch, one behind the other. Without memory it counts what they take, for plan().
class Room {
public:
    explicit Room(void* memory = nullptr) : at_(reinterpret_cast<std::uintptr_t>(memory)) {}
    template <class T>
    T* take(std::int64_t n) {
        constexpr std::uint64_t alignment = 256;
        auto* const part = reinterpret_cast<T*>(at_ + bytes_);
        const std::uint64_t bytes = static_cast<std::uint64_t>(n) * sizeof(T);
        bytes_ += (bytes + alignment - 1) / alignment * alignment;
        return part;
    }
    std::uint64_t bytes() const { return bytes_; }

private:
    std::uintptr_t at_;
    std::uint64_t bytes_ = 0;
};

// A group of lanes works on a strip of columns of one thing: a row, or several that are summed up.
// Each lane has a pack of a row, or as many columns, each beside that of the next lane.
struct Columns {
    Columns(std::int64_t row_size, int width, bool may_pack)
        : size(row_size), packed(may_pack && row_size % width == 0) {
        const std::int64_t packs = (row_size + width - 1) / width;
        lane_bits = std::min(5, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(
                                    std::max<std::int64_t>(packs - 1, 0)))));
        strips = cuda::Divider<std::uint64_t>(static_cast<std::uint64_t>(
            std::max<std::int64_t>((packs + (1 << lane_bits) - 1) >> lane_bits, 1)));
    }
    // Threads for n things.
    std::int64_t threads(std::int64_t n) const {
        return (n * static_cast<std::int64_t>(strips.divisor())) << lane_bits;
    }

    std::int64_t size;
    cuda::Divider<std::uint64_t> strips;  // of a row
    std::int32_t lane_bits;
    std::int32_t packed;
};

// This thread's strip, and of which thing it is.
template <int width>
struct Strip {
    __device__ __forceinline__ Strip(const Columns& columns, std::int64_t thread)
        : size(columns.size), packed(columns.packed != 0) {
        const auto group = static_cast<std::uint64_t>(thread >> columns.lane_bits);
        const std::int64_t lanes = std::int64_t{1} << columns.lane_bits;
        const std::int64_t lane = thread & (lanes - 1);
        thing = static_cast<std::int64_t>(columns.strips.quotient(group));
        const std::int64_t strip = static_cast<std::int64_t>(group) -
                                   thing * static_cast<std::int64_t>(columns.strips.divisor());
        first = strip * lanes * width + (packed ? lane * width : lane);
        step = packed ? 1 : lanes;
    }
    // x = the strip of a row. What lies beyond the row is not touched.
    template <class C, class T>
    __device__ __forceinline__ void load(const T* row, C (&x)[width]) const {
        if (packed) {
            if (first < size) cuda::load<width>(row + first, true, width, x);
        } else {
            CATENA_UNROLL
            for (int j = 0; j < width; ++j)
                if (first + j * step < size) x[j] = cuda::load_as<C>(row[first + j * step]);
        }
    }
    template <class C, class T>
    __device__ __forceinline__ void store(T* row, bool add, const C (&x)[width]) const {
        if (packed) {
            if (first < size) cuda::store(row + first, true, width, add, x);
        } else {
            CATENA_UNROLL
            for (int j = 0; j < width; ++j) {
                if (first + j * step >= size) continue;
                T& y = row[first + j * step];
                y = add ? cuda::stored_sum(y, x[j]) : cuda::store_as<T>(x[j]);
            }
        }
    }

    std::int64_t size;
    std::int64_t thing;
    std::int64_t first, step;
    bool packed;
};

}  // namespace catena::plugins
