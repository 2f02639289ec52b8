// sum_to_shape() for integers and bool of fewer than 64 bits, whose sums are int64.
#pragma once

#include <atomic>

#include "catena/plugin/reduce.hpp"

namespace catena::plugin {

// Sets y to x of shape `from`, summed to the shape `to` that broadcasts to it; or adds it to y.
template <class Call, class T>
    requires(!std::is_same_v<T, std::int64_t>)
CATENA_KERNEL void sum_to_shape(const Call& call, const T* x, Shape from, std::int64_t* y, Shape to,
                                bool add) {
    constexpr std::int64_t strip = 256;  // kept elements that are summed side by side
    const std::size_t more = from.size() - to.size();
    const Reduction r(from, [&](std::size_t d) { return d < more || to[d - more] == 1; });
    if (r.n_kept() == 0) return;
    const std::int64_t row = r.inner_reduced() ? 1 : r.inner();
    const std::int64_t run = r.inner_reduced() ? r.inner() : 1;
    const std::int64_t per_row = (row + strip - 1) / strip;
    if (r.n_kept() == 1 && run == r.n_reduced()) {  // pieces of one sum
        std::atomic<std::int64_t> total = 0;
        auto piece = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            total += static_cast<std::int64_t>(sum_of(x + begin, end - begin));
        };
        call.parallel(run, 1, piece);
        return store(*y, add, total.load());
    }
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t s = begin; s < end; ++s) {
            const std::int64_t first = s / per_row * row + s % per_row * strip;
            const std::int64_t width = std::min(strip, row - s % per_row * strip);
            const T* const base = x + r.offset(first, false);
            std::int64_t sums[strip] = {};
            for (std::int64_t i = 0; i < r.n_reduced(); i += run) {
                const T* const terms = base + r.offset(i, true);
                if (r.inner_reduced()) sums[0] += static_cast<std::int64_t>(sum_of(terms, run));
                else
                    for (std::int64_t k = 0; k < width; ++k) sums[k] += terms[k];
            }
            for (std::int64_t k = 0; k < width; ++k) store(y[first + k], add, sums[k]);
        }
    };
    call.parallel(r.n_kept() / row * per_row,
                  std::max<std::int64_t>(1, r.n_reduced() * std::min(row, strip)), body);
}

}  // namespace catena::plugin
