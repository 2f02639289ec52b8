// Index arithmetic of kernels: division by numbers that are fixed per launch, and iteration over
// operands that are broadcast. Plain C++, so it can be tested without a GPU.
#pragma once

#include <bit>
#include <cstdint>

#include "catena/plugin/error.hpp"
#include "catena/plugin/isa.hpp"

// Precedes a loop of few iterations: copies of its body only make kernels longer.
#if defined(__CUDACC__)
#define CATENA_ROLL _Pragma("unroll 1")
#else
#define CATENA_ROLL
#endif

namespace catena::plugin::cuda {

CATENA_FN std::uint32_t multiply_high(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}
CATENA_FN std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
    return __umul64hi(a, b);
#else
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{a} * b >> 64);
#endif
}

// n / d by a product and a shift, for n below 2^31 (2^63) and d from 1 to 2^31 (2^63).
template <class U>
class Divider {
public:
    Divider() = default;
    constexpr explicit Divider(U d) : d_(d) {
        constexpr int bits = 8 * sizeof(U);
        __extension__ using Wide = unsigned __int128;
        if (d == 1) return;                                                        // n itself
        const auto log = static_cast<int>(std::bit_width(static_cast<U>(d - 1)));  // rounded up
        factor_ = static_cast<U>(((Wide{1} << (bits - 1 + log)) + d - 1) / d);
        shift_ = static_cast<U>(log - 1);
    }
    CATENA_FN U quotient(U n) const {
        return factor_ == 0 ? n : multiply_high(n, factor_) >> shift_;
    }
    CATENA_FN U divisor() const { return d_; }

private:
    U d_ = 1;
    U factor_ = 0;
    U shift_ = 0;
};

// Elements of a row-major tensor in units of up to `width` that lie side by side along its
// innermost axis, and where those of its operands are. Extents of 1 are left out, and neighbouring
// axes that all operands walk along in the same way are one.
template <class U, int n_operands>
struct Walk {
    static constexpr int most = n_operands <= 16 ? 16 : 8;  // axes; a kernel's parameters are few
    static constexpr std::int64_t unlimited =
        sizeof(U) == 4 ? std::int64_t{1} << 31 : std::numeric_limits<std::int64_t>::max();

    struct Unit {
        std::int64_t at[n_operands];
        std::int64_t first;  // of its elements, in the tensor
        int count;
    };

    // false: more axes than there is room for.
    [[gnu::noinline]] bool build(Shape shape, const Shape* operands, int pack_width) {
        width = pack_width;
        std::uint64_t sorts[CATENA_MAX_NDIM];
        std::int64_t sizes[CATENA_MAX_NDIM];
        int n = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            const std::uint64_t sort = steps(shape, d, operands);
            if (n > 0 && sorts[n - 1] == sort) {
                sizes[n - 1] *= shape[d];
            } else {
                sorts[n] = sort;
                sizes[n++] = shape[d];
            }
        }
        if (n > most) return false;
        n_axes = n;
        for (int k = 0; k < n_operands; ++k) {
            std::int64_t step = 1;
            for (int d = n; d-- > 0;) {
                const bool own = (sorts[d] >> k & 1) != 0;
                stride[d][k] = own ? step : 0;
                if (own) step *= sizes[d];
            }
        }
        for (int d = 0; d < n; ++d) extent[d] = sizes[d];
        prepare();
        return true;
    }
    // The same for operands of any layout: strides[d][k] is how far operand k goes along axis d of
    // shape, in elements, forwards or backwards. No extent is 0.
    bool build_strided(Shape shape, const std::int64_t (*strides)[n_operands], int pack_width) {
        width = pack_width;
        int n = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            bool merged = n > 0;
            for (int k = 0; merged && k < n_operands; ++k)
                merged = stride[n - 1][k] == strides[d][k] * shape[d];
            if (!merged && n == most) return false;
            if (!merged) extent[n++] = 1;
            extent[n - 1] *= shape[d];
            for (int k = 0; k < n_operands; ++k) stride[n - 1][k] = strides[d][k];
        }
        n_axes = n;
        prepare();
        return true;
    }
    // The operands that walk along axis d of shape.
    static std::uint64_t steps(Shape shape, std::size_t d, const Shape* operands) {
        std::uint64_t set = 0;
        for (int k = 0; k < n_operands; ++k) {
            const std::size_t more = shape.size() - operands[k].size();
            if (d >= more && operands[k][d - more] != 1) set |= std::uint64_t{1} << k;
        }
        return set;
    }
    // Operand k has one value for a whole unit.
    bool single(int k) const { return n_axes == 0 || stride[n_axes - 1][k] == 0; }
    // Units are whole: the next one begins `width` elements on.
    bool whole() const { return n_axes > 0 && extent[n_axes - 1] % width == 0; }
    std::int64_t inner() const { return n_axes == 0 ? 1 : extent[n_axes - 1]; }
    std::int64_t units() const {
        std::int64_t n = (inner() + width - 1) / width;
        for (int d = 0; d + 1 < n_axes; ++d) n *= extent[d];
        return n;
    }

    CATENA_FN Unit locate(U unit) const {
        Unit result = {};
        const U run = packs.quotient(unit);
        const auto inside = static_cast<std::int64_t>(unit - run * packs.divisor()) * width;
        const std::int64_t line = n_axes == 0 ? 1 : extent[n_axes - 1];
        result.first = static_cast<std::int64_t>(run) * line + inside;
        result.count = static_cast<int>(line - inside < width ? line - inside : width);
        add_run(run, result.at);
        if (n_axes == 0) return result;
        CATENA_UNROLL
        for (int k = 0; k < n_operands; ++k) result.at[k] += inside * stride[n_axes - 1][k];
        return result;
    }
    // Where operands are at one element, given by its place in the tensor.
    CATENA_FN void locate(U element, std::int64_t (&at)[n_operands]) const {
        const U run = length.quotient(element);
        const auto inside = static_cast<std::int64_t>(element - run * length.divisor());
        CATENA_UNROLL
        for (int k = 0; k < n_operands; ++k) at[k] = 0;
        add_run(run, at);
        if (n_axes == 0) return;
        CATENA_UNROLL
        for (int k = 0; k < n_operands; ++k) at[k] += inside * stride[n_axes - 1][k];
    }

    // body(part, first, at): the whole in parts of at most `limit` units, with the first element of
    // each in the tensor and in its operands.
    template <class Body>
    void for_each_part(const Body& body, std::int64_t limit = unlimited - 1) const {
        const std::int64_t zeros[n_operands] = {};
        const auto visit = [](const void* own, const Walk& part, std::int64_t first,
                              const std::int64_t(&at)[n_operands]) {
            (*static_cast<const Body*>(own))(part, first, at);
        };
        parts(visit, &body, limit, 0, zeros);
    }

    int n_axes = 0;
    int width = 1;
    Divider<U> packs;       // units along the innermost axis
    Divider<U> length;      // elements along it
    Divider<U> size[most];  // extents of the others; that of the outermost is not divided by
    std::int64_t extent[most] = {};
    std::int64_t stride[most][n_operands] = {};

private:
    // What does not fit U is in a walk that goes in parts.
    static Divider<U> divider(std::int64_t n) {
        return n > 0 && n <= unlimited ? Divider<U>(static_cast<U>(n)) : Divider<U>();
    }
    void prepare() {
        packs = divider((inner() + width - 1) / width);
        length = divider(inner());
        for (int d = 0; d + 1 < n_axes; ++d) size[d] = divider(extent[d]);
    }
    CATENA_FN void add_run(U run, std::int64_t (&at)[n_operands]) const {
        CATENA_ROLL
        for (int d = n_axes - 2; d >= 0; --d) {
            const U rest = d == 0 ? U(0) : size[d].quotient(run);
            const auto index = static_cast<std::int64_t>(run - rest * size[d].divisor());
            CATENA_UNROLL
            for (int k = 0; k < n_operands; ++k) at[k] += index * stride[d][k];
            run = rest;
        }
    }
    // Compiled once, for whatever is done with the parts.
    using Visit = void (*)(const void* body, const Walk& part, std::int64_t first,
                           const std::int64_t (&at)[n_operands]);
    [[gnu::noinline]] void parts(Visit visit, const void* body, std::int64_t limit,
                                 std::int64_t first, const std::int64_t (&at)[n_operands]) const {
        const std::int64_t all = units();
        if (all <= limit) {
            visit(body, *this, first, at);
            return;
        }
        // Cut along the outermost axis, into single steps if need be: those have an axis less.
        const bool line = n_axes == 1;
        const std::int64_t each = line ? 1 : all / extent[0];  // units of a step
        std::int64_t step = (limit / each > 1 ? limit / each : 1) * (line ? width : 1);
        std::int64_t elements = 1;  // of the tensor in a step along the axis
        for (int d = 1; d < n_axes; ++d) elements *= extent[d];
        for (std::int64_t i = 0; i < extent[0]; i += step) {
            Walk part = *this;
            std::int64_t from[n_operands];
            for (int k = 0; k < n_operands; ++k) from[k] = at[k] + i * stride[0][k];
            part.extent[0] = extent[0] - i < step ? extent[0] - i : step;
            if (!line && step == 1) {
                part.n_axes = n_axes - 1;
                for (int d = 0; d < part.n_axes; ++d) {
                    part.extent[d] = extent[d + 1];
                    for (int k = 0; k < n_operands; ++k) part.stride[d][k] = stride[d + 1][k];
                }
            }
            part.prepare();
            part.parts(visit, body, limit, first + i * elements, from);
        }
    }
};

// A part of some planes of rows and columns, for a launch: its places fit in 32 bits.
struct Box {
    struct Place {
        std::int64_t plane, row, column;
    };
    CATENA_FN Place locate(std::uint32_t place) const {
        const std::uint32_t line = columns.quotient(place);
        const std::uint32_t above = rows.quotient(line);
        return {first.plane + above, first.row + (line - above * rows.divisor()),
                first.column + (place - line * columns.divisor())};
    }

    Place first = {};
    Divider<std::uint32_t> rows, columns;
    std::uint32_t places = 0;
    std::uint32_t reserved = 0;  // no byte is left open
};
// body(box): the whole in boxes of at most `limit` places.
template <class Body>
void for_each_box(std::int64_t planes, std::int64_t rows, std::int64_t columns, const Body& body,
                  std::int64_t limit = std::int64_t{1} << 30) {
    if (planes == 0 || rows == 0 || columns == 0) return;
    const auto most = [](std::int64_t n, std::int64_t room) {
        return n < room ? n : room < 1 ? std::int64_t{1} : room;
    };
    const std::int64_t width = most(columns, limit);
    const std::int64_t height = most(rows, limit / width);
    const std::int64_t depth = most(planes, limit / (width * height));
    for (std::int64_t p = 0; p < planes; p += depth)
        for (std::int64_t r = 0; r < rows; r += height)
            for (std::int64_t c = 0; c < columns; c += width) {
                const std::int64_t d = most(planes - p, depth);
                const std::int64_t h = most(rows - r, height);
                const std::int64_t w = most(columns - c, width);
                Box box;
                box.first = {p, r, c};
                box.rows = Divider<std::uint32_t>(static_cast<std::uint32_t>(h));
                box.columns = Divider<std::uint32_t>(static_cast<std::uint32_t>(w));
                box.places = static_cast<std::uint32_t>(d * h * w);
                body(box);
            }
}

// A row-major tensor whose axes are kept or summed, in units along its innermost axis. Where that
// is summed ("rows") a unit holds terms of one sum, else ("columns") terms of sums side by side.
struct Fold {
    struct Unit {
        std::int64_t at;   // in the tensor, apart from the other sort
        std::int64_t out;  // kept: the first sum
        int count;         // of elements, if the unit is of the innermost axis' sort
    };
    struct Sort {
        std::int64_t n = 0;  // axes but the innermost, from the outermost on
        Divider<std::uint64_t> size[CATENA_MAX_NDIM];
        std::int64_t stride[CATENA_MAX_NDIM] = {};
        std::int64_t runs = 1;

        CATENA_FN std::int64_t locate(std::uint64_t run) const {
            std::int64_t at = 0;
            CATENA_ROLL
            for (auto d = static_cast<int>(n) - 1; d >= 0; --d) {
                const std::uint64_t rest = d == 0 ? 0 : size[d].quotient(run);
                at += static_cast<std::int64_t>(run - rest * size[d].divisor()) * stride[d];
                run = rest;
            }
            return at;
        }
    };

    Fold() = default;
    // summed(d) says whether axis d of shape is summed, steps[d] which operands walk along it
    // (null: all along all); units go along axes of one sort. No extent is 0. may_split: over
    // blocks.
    template <class Summed>
    Fold(Shape shape, const Summed& summed, int pack_width, const std::uint64_t* steps = nullptr,
         bool may_split = true)
        : width(pack_width) {
        std::int64_t sizes[CATENA_MAX_NDIM];
        bool sorts[CATENA_MAX_NDIM];
        int n = 0;
        std::size_t before = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            const bool s = summed(d);
            if (n > 0 && sorts[n - 1] == s && (steps == nullptr || steps[before] == steps[d])) {
                sizes[n - 1] *= shape[d];
            } else {
                sorts[n] = s;
                sizes[n++] = shape[d];
            }
            before = d;
        }
        rows = n == 0 || sorts[n - 1];
        inner = n == 0 ? 1 : sizes[n - 1];
        std::int64_t strides[CATENA_MAX_NDIM];
        std::int64_t step = 1;
        for (int d = n; d-- > 0; step *= sizes[d]) strides[d] = step;
        for (int d = 0; d + 1 < n; ++d) {
            Sort& sort = sorts[d] ? reduced : kept;
            sort.size[sort.n] = Divider<std::uint64_t>(static_cast<std::uint64_t>(sizes[d]));
            sort.stride[sort.n++] = strides[d];
            sort.runs *= sizes[d];
        }
        const std::int64_t n_packs = (inner + width - 1) / width;
        packs = Divider<std::uint64_t>(static_cast<std::uint64_t>(n_packs));
        kept_units = kept.runs * (rows ? 1 : n_packs);
        reduced_units = reduced.runs * (rows ? n_packs : 1);
        n_kept = kept.runs * (rows ? 1 : inner);
        lanes_and_splits(may_split);
    }

    CATENA_FN Unit locate_kept(std::uint64_t unit) const {
        if (rows) return {kept.locate(unit), static_cast<std::int64_t>(unit), 1};
        return locate(kept, unit);
    }
    CATENA_FN Unit locate_reduced(std::uint64_t unit) const {
        if (!rows) return {reduced.locate(unit), 0, 1};
        return locate(reduced, unit);
    }

    static constexpr int block = 256;  // threads: kept_lanes times reduced_lanes

    int width = 1;
    int rows = 1;  // or 0: columns
    int kept_lanes = 1;
    int reduced_lanes = 1;
    std::int64_t inner = 1;
    std::int64_t kept_units = 1, reduced_units = 1, n_kept = 1;
    // Units of each split's part; the sums of several are added up afterwards, in order.
    std::int64_t splits = 1;
    std::int64_t per_split = 0;
    std::int64_t blocks = 1;  // of kept units
    Divider<std::uint64_t> packs;
    Sort kept, reduced;

private:
    CATENA_FN Unit locate(const Sort& sort, std::uint64_t unit) const {
        const std::uint64_t run = packs.quotient(unit);
        const auto inside = static_cast<std::int64_t>(unit - run * packs.divisor()) * width;
        return {sort.locate(run) + inside, static_cast<std::int64_t>(run) * inner + inside,
                static_cast<int>(inner - inside < width ? inner - inside : width)};
    }
    static std::int64_t ceil2(std::int64_t n) {
        return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
    }
    static std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
    static std::int64_t most(std::int64_t a, std::int64_t b) { return a < b ? b : a; }

    // Depends on nothing but the shape, so that results have the same bits on every device.
    void lanes_and_splits(bool may_split) {
        if (rows) {
            reduced_lanes = static_cast<int>(least(
                block, most(least(32, ceil2(reduced_units)), ceil2((reduced_units + 7) / 8))));
            kept_lanes = block / reduced_lanes;
        } else {
            const std::int64_t across =
                least(32, ceil2(static_cast<std::int64_t>(packs.divisor())));
            reduced_lanes = static_cast<int>(least(block / across, ceil2(reduced_units)));
            kept_lanes = block / reduced_lanes;
        }
        blocks = (kept_units + kept_lanes - 1) / kept_lanes;
        constexpr std::int64_t enough = 1024;  // blocks that keep any device busy
        const std::int64_t useful = reduced_units / (16 * reduced_lanes);
        splits = may_split ? most(1, least(enough / blocks, useful)) : 1;
        per_split = (reduced_units + splits - 1) / splits;
        splits = most(1, (reduced_units + per_split - 1) / (per_split == 0 ? 1 : per_split));
    }
};

}  // namespace catena::plugin::cuda
