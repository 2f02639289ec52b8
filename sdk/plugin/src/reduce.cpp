// Sums over axes, compiled once for each type and instruction set.
#include "catena/plugin/reduce.hpp"

#include "each_type.hpp"

namespace catena::plugin::detail {
namespace {

inline constexpr std::int64_t strip = 256;  // kept elements that are summed side by side

// acc[0 .. width) += the kept elements [kept, kept + width), summed over [from, to).
template <class T>
CATENA_KERNEL void sum_block(const Reduction& r, const T* x, std::int64_t kept, std::int64_t width,
                             std::int64_t from, std::int64_t to, Total<T>* acc) {
    if (r.inner_reduced()) {
        for (std::int64_t k = 0; k < width; ++k) {
            const T* base = x + r.offset(kept + k, false);
            for (std::int64_t i = from; i < to;) {
                const std::int64_t run = std::min(to - i, r.inner() - i % r.inner());
                acc[k] += sum_of(base + r.offset(i, true), run);
                i += run;
            }
        }
    } else {
        const T* base = x + r.offset(kept, false);
        for (std::int64_t i = from; i < to; i += 8) {  // eight rows in Lane<T>, then in Total<T>
            Lane<T> rows[strip];
            std::fill_n(rows, width, Lane<T>(0));
            const std::int64_t end = std::min(i + 8, to);
            for (std::int64_t j = i; j < end; ++j) {
                const T* row = base + r.offset(j, true);
                CATENA_LOOP
                for (std::int64_t k = 0; k < width; ++k) rows[k] += static_cast<Lane<T>>(row[k]);
            }
            CATENA_LOOP
            for (std::int64_t k = 0; k < width; ++k) acc[k] += static_cast<Total<T>>(rows[k]);
        }
    }
}

template <Isa isa, class T>
void sum_axes_for(catena_ctx* ctx, const Reduction& r, const T* x, T* y, bool add) {
    constexpr std::int64_t most = 4096;  // sums on the stack
    const std::int64_t kept = r.n_kept();
    const std::int64_t reduced = r.n_reduced();
    if (kept == 0) return;
    // Strips of kept elements; none crosses the end of a row.
    const std::int64_t row = r.inner_reduced() ? kept : r.inner();
    const std::int64_t per_row = (row + strip - 1) / strip;
    const std::int64_t strips = kept / row * per_row;
    // With few strips, the summed range is also split into pieces, which are added in order.
    std::int64_t pieces = 1;
    if (strips < 4)
        pieces = std::clamp<std::int64_t>(kept * reduced / serial_work, 1, most / (strips * strip));
    Total<T> part[most];
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t piece = i / strips;
            const std::int64_t s = i % strips;
            const std::int64_t first = s / per_row * row + s % per_row * strip;
            const std::int64_t width = std::min(strip, row - s % per_row * strip);
            Total<T> own[strip];
            Total<T>* const acc = pieces == 1 ? own : part + piece * kept + first;
            std::fill_n(acc, width, Total<T>(0));
            sum_block(r, x, first, width, reduced * piece / pieces, reduced * (piece + 1) / pieces,
                      acc);
            if (pieces > 1) continue;
            for (std::int64_t k = 0; k < width; ++k)
                store(y[first + k], add, static_cast<T>(acc[k]));
        }
    };
    const std::int64_t units = pieces * strips;
    parallel<isa>(ctx, units, std::max<std::int64_t>(1, kept * reduced / units), body);
    if (pieces == 1) return;
    for (std::int64_t k = 0; k < kept; ++k) {
        Total<T> total = 0;
        for (std::int64_t piece = 0; piece < pieces; ++piece) total += part[piece * kept + k];
        store(y[k], add, static_cast<T>(total));
    }
}

}  // namespace

// Integers use only the baseline instruction set.
template <class T>
void sum_axes(catena_ctx* ctx, [[maybe_unused]] Isa isa, const Reduction& r, const T* x, T* y,
              bool add) {
#if defined(CATENA_X86)
    if constexpr (std::is_floating_point_v<T>) {
        if (isa == Isa::x86_64_v4) return sum_axes_for<Isa::x86_64_v4>(ctx, r, x, y, add);
        if (isa == Isa::x86_64_v3) return sum_axes_for<Isa::x86_64_v3>(ctx, r, x, y, add);
    }
#endif
    sum_axes_for<Isa::baseline>(ctx, r, x, y, add);
}

#define CATENA_SUM(T) \
    template void sum_axes(catena_ctx*, Isa, const Reduction&, const T*, T*, bool);
CATENA_EACH_TYPE(CATENA_SUM)

}  // namespace catena::plugin::detail
