// Lines along one axis of a tensor, each processed by some threads (lanes) of a block, for
// functions that read a whole line before they write, such as a softmax.
#pragma once

#include "catena/plugin/cuda/elementwise.cuh"
#include "catena/plugin/rows.hpp"

namespace catena::plugin::cuda {

struct Lines {
    explicit Lines(const Axis& axis)
        : count(axis.count()),
          length(axis.length),
          inner(axis.inner),
          by_inner(static_cast<std::uint64_t>(std::max<std::int64_t>(axis.inner, 1))) {
        // Adjacent threads have adjacent elements, either of one line or of adjacent lines.
        const std::int64_t beside = inner == 1 ? 1 : ceil2(std::clamp<std::int64_t>(inner, 1, 32));
        const std::int64_t most = std::max<std::int64_t>(length, 1);
        lanes = static_cast<int>(
            std::min(block / beside, inner == 1 ? lanes_of_row(most) : ceil2(most)));
    }
    int lines_of_block() const { return block / lanes; }
    dim3 blocks() const {
        return {static_cast<unsigned>((count + lines_of_block() - 1) / lines_of_block())};
    }

    std::int64_t count;  // number of lines
    std::int64_t length;
    std::int64_t inner;  // the step from one element to the next
    Divider by_inner;
    int lanes;
    int reserved = 0;  // no padding bytes
};

// The line of this thread, in a launch of lines.blocks() blocks of cuda::block threads. The thread
// processes elements `lane`, `lane + lines.lanes`, ... below `end`.
struct Line {
    __device__ __forceinline__ explicit Line(const Lines& lines) {
        const int t = static_cast<int>(threadIdx.x);
        const int side = block / lines.lanes;
        place = lines.inner == 1 ? t / lines.lanes : t % side;
        lane = lines.inner == 1 ? t % lines.lanes : t / side;
        step = lines.inner == 1 ? 1 : side;
        index = static_cast<std::int64_t>(blockIdx.x) * side + place;
        there = index < lines.count;
        if (!there) index = 0;
        end = there ? lines.length : 0;
        const auto outer =
            static_cast<std::int64_t>(lines.by_inner.quotient(static_cast<std::uint64_t>(index)));
        base = outer * lines.length * lines.inner + (index - outer * lines.inner);
        inner = lines.inner;
    }
    // Returns the offset of element i of the line.
    __device__ __forceinline__ std::int64_t at(std::int64_t i) const { return base + i * inner; }

    std::int64_t index, base, inner, end;
    int lane;
    int step;   // difference of the thread indices of adjacent lanes
    int place;  // index of the line within the block
    bool there;
};

// Joins the values of a line's lanes pairwise, in a fixed order; all of them get the result. All
// threads of the block must call it.
template <class V, class Join>
__device__ __forceinline__ V join_lanes(const Lines& lines, const Line& line, V own,
                                        const Join& join) {
    return join_lanes(own, line.lane, lines.lanes, line.step, join);
}

// The maximum of numbers, and the sum of e^(number - maximum), in which -inf counts as 0. The sum
// is NaN if a number is inf or NaN. Joining two does not overflow.
template <class C>
struct LogSum {
    static __device__ __forceinline__ C lowest() { return -std::numeric_limits<C>::infinity(); }
    static __device__ __forceinline__ LogSum join(const LogSum& a, const LogSum& b) {
        const bool first = a.most > b.most;
        const C top = first ? a.most : b.most;
        const C by = top == lowest() ? C(0) : top;  // not -inf - -inf
        const C less = math::exp((first ? b.most : a.most) - by);
        return {top, (first ? a.sum : b.sum) + (first ? b.sum : a.sum) * less};
    }
    __device__ __forceinline__ void take(C x) {
        *this = join(*this, {x, x == lowest() ? C(0) : C(1) + (x - x)});  // x - x: 0 or NaN
    }
    C most, sum;
};

}  // namespace catena::plugin::cuda
