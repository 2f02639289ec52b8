// Index arithmetic of kernels: division by numbers that are fixed per launch, and the offsets of
// elements in operands that are broadcast. Plain C++, so it can be tested without a GPU.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "catena/plugin/error.hpp"
#include "catena/plugin/isa.hpp"

// Precedes a loop of few iterations, which would only become longer if it were unrolled.
#if defined(__CUDACC__)
#define CATENA_ROLL _Pragma("unroll 1")
#else
#define CATENA_ROLL
#endif

namespace catena::plugin::cuda {

inline std::int64_t ceil2(std::int64_t n) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

// Computes n / d by a product and a shift, for n below 2^63 and d from 1 to 2^63.
class Divider {
public:
    Divider() = default;
    constexpr explicit Divider(std::uint64_t d) : d_(d) {
        if (d <= 1) return;  // the quotient is n; avoids a division by 0
        const auto log = static_cast<int>(std::bit_width(d - 1));  // log2(d), rounded up
        factor_ = static_cast<std::uint64_t>(((Wide{1} << (63 + log)) + d - 1) / d);
        shift_ = static_cast<std::uint64_t>(log - 1);
    }
    CATENA_FN std::uint64_t quotient(std::uint64_t n) const {
        if (factor_ == 0) return n;
#if defined(__CUDA_ARCH__)
        return __umul64hi(n, factor_) >> shift_;
#else
        return static_cast<std::uint64_t>(Wide{n} * factor_ >> 64) >> shift_;
#endif
    }
    CATENA_FN std::uint64_t divisor() const { return d_; }

private:
    __extension__ typedef unsigned __int128 Wide;
    std::uint64_t d_ = 1;
    std::uint64_t factor_ = 0;
    std::uint64_t shift_ = 0;
};

// Maps elements of a row-major tensor to their offsets in operands with other strides. Axes of
// extent 1 are left out; adjacent axes are merged if the strides of all operands permit it.
template <int n_operands>
struct Walk {
    // For dense operands that broadcast to `shape`.
    [[gnu::noinline]] void build(Shape shape, const Shape* operands) {
        std::int64_t strides[CATENA_MAX_NDIM][n_operands];
        for (int k = 0; k < n_operands; ++k) {
            const std::size_t more = shape.size() - operands[k].size();
            std::int64_t step = 1;
            for (std::size_t d = shape.size(); d-- > 0;) {
                const std::int64_t own = d < more ? 1 : operands[k][d - more];
                strides[d][k] = own == 1 ? 0 : step;
                step *= own;
            }
        }
        build_strided(shape, strides);
    }
    // strides[d][k]: operand k's stride along axis d in elements; may be negative. No extent is 0.
    void build_strided(Shape shape, const std::int64_t (*strides)[n_operands]) {
        n_axes = 0;
        size = 1;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            bool merged = n_axes > 0;
            for (int k = 0; merged && k < n_operands; ++k)
                merged = stride[n_axes - 1][k] == strides[d][k] * shape[d];
            const std::uint64_t before = merged ? extent[n_axes - 1].divisor() : 1;
            if (!merged) ++n_axes;
            extent[n_axes - 1] = Divider(before * static_cast<std::uint64_t>(shape[d]));
            for (int k = 0; k < n_operands; ++k) stride[n_axes - 1][k] = strides[d][k];
            size *= shape[d];
        }
    }

    CATENA_FN void locate(std::int64_t element, std::int64_t (&at)[n_operands]) const {
        CATENA_UNROLL
        for (int k = 0; k < n_operands; ++k) at[k] = 0;
        auto run = static_cast<std::uint64_t>(element);
        CATENA_ROLL
        for (int d = n_axes - 1; d >= 0; --d) {
            const std::uint64_t rest = d == 0 ? 0 : extent[d].quotient(run);
            const auto index = static_cast<std::int64_t>(run - rest * extent[d].divisor());
            CATENA_UNROLL
            for (int k = 0; k < n_operands; ++k) at[k] += index * stride[d][k];
            run = rest;
        }
    }

    // Returns the offset in a single operand.
    CATENA_FN std::int64_t locate(std::int64_t element) const requires(n_operands == 1) {
        std::int64_t at[1];
        locate(element, at);
        return at[0];
    }

    // Returns the step from an element to the n-th after it, or 0 if it is not the same everywhere.
    CATENA_FN std::int64_t step(std::int64_t n) const requires(n_operands == 1) {
        return n_axes <= 1 ? n * stride[0][0] : 0;
    }

    int n_axes = 0;
    int reserved = 0;       // no padding bytes
    std::int64_t size = 1;  // of the tensor
    Divider extent[CATENA_MAX_NDIM];
    std::int64_t stride[CATENA_MAX_NDIM][n_operands] = {};
};

// Returns the number of threads, a power of two, that share n adjacent elements. Each thread of
// more than a warp has at least 4 elements, so that joining their results costs little.
inline std::int64_t lanes_of_row(std::int64_t n) {
    return std::max(std::min<std::int64_t>(32, ceil2(n)), ceil2((n + 7) / 8));
}

// A row-major tensor whose axes are kept or summed: which terms each sum has, and how the threads
// of blocks share them. Neighbouring threads have neighbouring terms where the innermost axis is
// summed ("rows"), else neighbouring sums ("columns").
struct Fold {
    Fold() = default;
    // summed(d) tells whether axis d of `shape` is summed. No extent may be 0.
    template <class Summed>
    Fold(Shape shape, const Summed& summed) {
        // Kept axes [0] and summed axes [1], each filled from the end.
        std::int64_t extents[2][CATENA_MAX_NDIM];
        std::int64_t strides[2][CATENA_MAX_NDIM][1];
        std::size_t first[] = {CATENA_MAX_NDIM, CATENA_MAX_NDIM};
        std::int64_t step = 1;
        std::int64_t inner = 1;  // elements of the innermost axes that are all kept or all summed
        bool among = true;       // axis d belongs to these axes
        for (std::size_t d = shape.size(); d-- > 0; step *= shape[d]) {
            const bool s = summed(d);
            extents[s][--first[s]] = shape[d];
            strides[s][first[s]][0] = step;
            if (shape[d] == 1) continue;
            if (inner == 1) rows = s;
            among = among && s == (rows != 0);
            if (among) inner *= shape[d];
        }
        const auto build = [&](Walk<1>& walk, int s) {
            walk.build_strided(Shape(extents[s] + first[s], CATENA_MAX_NDIM - first[s]),
                               strides[s] + first[s]);
        };
        build(kept, 0);
        build(reduced, 1);
        share(inner);
    }

    static constexpr int block = 256;  // threads: kept_lanes times reduced_lanes

    int rows = 1;  // or 0: columns
    int kept_lanes = 1;
    int reduced_lanes = 1;
    int reserved = 0;
    // The terms of a sum are split into parts, whose sums are then added in order.
    std::int64_t splits = 1;
    std::int64_t per_split = 0;
    std::int64_t blocks = 1;  // of each split
    // A term's offset in the tensor is its sum's offset in `kept` plus its own in `reduced`.
    Walk<1> kept, reduced;

private:
    // Depends only on the shape, so that results have the same bits on every device.
    void share(std::int64_t inner) {
        const std::int64_t terms = reduced.size;
        const std::int64_t beside = rows != 0 ? lanes_of_row(terms) : ceil2(terms);
        const std::int64_t room =
            rows != 0 ? block : block / std::min<std::int64_t>(32, ceil2(inner));
        reduced_lanes = static_cast<int>(std::min(room, beside));
        kept_lanes = block / reduced_lanes;
        blocks = (kept.size + kept_lanes - 1) / kept_lanes;
        constexpr std::int64_t enough = 1024;  // blocks that keep any device busy
        constexpr std::int64_t least = 32;     // terms of a lane, before a second launch pays off
        splits = std::clamp<std::int64_t>(terms / (least * reduced_lanes), 1,
                                          std::max<std::int64_t>(1, enough / blocks));
        per_split = (terms + splits - 1) / splits;
        splits = (terms + per_split - 1) / per_split;
    }
};

}  // namespace catena::plugin::cuda
