// Lines along one axis of a tensor, each processed by some lanes of a block: for functions that
// need a whole line before they can write, such as a softmax. Lanes process `width` elements at a
// time; along the last axis these are contiguous.
#pragma once

#include "catena/plugin/cuda/index.hpp"
#include "catena/plugin/cuda/launch.cuh"
#include "catena/plugin/cuda/pack.cuh"
#include "catena/plugin/rows.hpp"

namespace catena::plugin::cuda {

struct Lines {
    Lines(const Axis& axis, int pack_width)
        : count(axis.count()),
          length(std::max<std::int64_t>(axis.length, 1)),
          inner(axis.inner),
          by_inner(static_cast<std::uint64_t>(std::max<std::int64_t>(axis.inner, 1))),
          width(pack_width) {
        const auto ceil2 = [](std::int64_t n) {
            return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(n)));
        };
        if (inner == 1) {
            threads = length > 16384 ? most_threads : block;
            lanes = ceil2(std::clamp<std::int64_t>((length + width - 1) / width, 1, threads));
        } else {
            lanes =
                std::min(block / ceil2(std::min<std::int64_t>(inner, 32)),
                         ceil2(std::min<std::int64_t>((length + width - 1) / width, most_threads)));
        }
        turns = (length + std::int64_t{lanes} * width - 1) / (std::int64_t{lanes} * width);
    }
    dim3 blocks() const {
        const std::int64_t each = threads / lanes;
        return {static_cast<unsigned>((count + each - 1) / each)};
    }
    static constexpr int most_threads = 1024;

    std::int64_t count;  // of lines
    std::int64_t length;
    std::int64_t inner;  // the step from one element to the next
    Divider<std::uint64_t> by_inner;
    std::int64_t turns;
    int width;
    int lanes;
    int threads = block;
    int reserved = 0;  // no byte is left open
};

// This thread's line.
struct Line {
    __device__ __forceinline__ explicit Line(const Lines& lines) {
        const int t = static_cast<int>(threadIdx.x);
        const int side = lines.threads / lines.lanes;
        place = lines.inner == 1 ? t / lines.lanes : t % side;
        lane = lines.inner == 1 ? t % lines.lanes : t / side;
        index = static_cast<std::int64_t>(blockIdx.x) * side + place;
        there = index < lines.count;
        if (!there) index = 0;
        const auto outer =
            static_cast<std::int64_t>(lines.by_inner.quotient(static_cast<std::uint64_t>(index)));
        base = outer * lines.length * lines.inner + (index - outer * lines.inner);
    }
    // The first element of a turn, along the line; and how far its next one is.
    __device__ __forceinline__ std::int64_t first(const Lines& lines, std::int64_t turn) const {
        return lines.inner == 1 ? (turn * lines.lanes + lane) * lines.width
                                : turn * lines.width * lines.lanes + lane;
    }
    __device__ __forceinline__ std::int64_t step(const Lines& lines) const {
        return lines.inner == 1 ? 1 : lines.lanes;
    }
    std::int64_t index, base;
    int lane;
    int place;  // of the line among those of the block
    bool there;
};

// Elements of a line's turn: x[j] for j below the result, the others are `otherwise`.
template <int width, class C, class T>
__device__ __forceinline__ int load_turn(const Lines& lines, const Line& line, const T* data,
                                         std::int64_t turn, bool aligned, C otherwise,
                                         C (&x)[width]) {
    const std::int64_t first = line.first(lines, turn);
    const std::int64_t step = line.step(lines);
    const T* const p = data + line.base + first * lines.inner;
    std::int64_t left = line.there ? lines.length - first : 0;
    int count = 0;
    CATENA_UNROLL
    for (int j = 0; j < width; ++j, left -= step) count += left > 0;
    if (aligned && count == width) {
        load<width>(p, true, count, x);
    } else {
        CATENA_UNROLL
        for (int j = 0; j < width; ++j)
            x[j] = j < count ? load_as<C>(p[j * step * lines.inner]) : otherwise;
    }
    return count;
}
template <int width, class C, class T>
__device__ __forceinline__ void store_turn(const Lines& lines, const Line& line, T* data,
                                           std::int64_t turn, bool aligned, int count, bool add,
                                           const C (&x)[width]) {
    const std::int64_t step = line.step(lines) * lines.inner;
    T* const p = data + line.base + line.first(lines, turn) * lines.inner;
    if (aligned && count == width) {
        store(p, true, count, add, x);
    } else {
        CATENA_UNROLL
        for (int j = 0; j < width; ++j)
            if (j < count) p[j * step] = add ? stored_sum(p[j * step], x[j]) : store_as<T>(x[j]);
    }
}
// Whether turns along the lines of a tensor are packs.
template <class T, int width>
bool turns_are_packs(const Lines& lines, const T* data) {
    return lines.inner == 1 && lines.length % width == 0 && is_aligned<T, width>(data);
}

__device__ __forceinline__ void sync_lanes(const Lines& lines) {
    sync_lanes(lines.inner == 1 ? lines.lanes : lines.threads);
}
// Lanes' values joined pairwise, in a fixed order; all of a line's lanes get the result. All
// threads of the block take part. shared has Lines::most_threads places.
template <class V, class Join>
__device__ __forceinline__ V join_lanes(const Lines& lines, const Line& line, V value, V* shared,
                                        const Join& join) {
    if (lines.lanes == 1) return value;
    const int t = static_cast<int>(threadIdx.x);
    const int step = lines.inner == 1 ? 1 : lines.threads / lines.lanes;
    sync_lanes(lines);  // what was there before has been read
    shared[t] = value;
    for (int half = lines.lanes / 2; half > 0; half /= 2) {
        sync_lanes(lines);
        if (line.lane < half) shared[t] = join(shared[t], shared[t + half * step]);
    }
    sync_lanes(lines);
    return shared[t - line.lane * step];
}

// The largest of some numbers, and the sum of e^(number - largest): joined without overflow.
template <class C>
struct LogSum {
    static __device__ __forceinline__ C lowest() { return -std::numeric_limits<C>::infinity(); }
    // Where all are -inf, nothing is to be subtracted.
    static __device__ __forceinline__ C shift(C most) { return most == lowest() ? C(0) : most; }

    template <int width>
    __device__ __forceinline__ void take(const C (&x)[width]) {
        C top = most;
        CATENA_UNROLL
        for (int j = 0; j < width; ++j) top = x[j] > top ? x[j] : top;
        const C by = shift(top);
        C added = 0;
        CATENA_UNROLL
        for (int j = 0; j < width; ++j) added += math::exp(x[j] - by);
        sum = sum * math::exp(most - by) + added;
        most = top;
    }
    static __device__ __forceinline__ LogSum join(const LogSum& a, const LogSum& b) {
        const C top = a.most > b.most ? a.most : b.most;
        const C by = shift(top);
        return {top, a.sum * math::exp(a.most - by) + b.sum * math::exp(b.most - by)};
    }
    C most, sum;
};

}  // namespace catena::plugin::cuda
