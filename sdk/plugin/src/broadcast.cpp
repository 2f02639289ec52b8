// Broadcasting of a smaller tensor's elements, compiled once for each type.
#include "catena/plugin/broadcast.hpp"

#include "each_type.hpp"

namespace catena::plugin {

Broadcast::Broadcast(Shape from, Shape to) {
    const std::size_t more = to.size() - from.size();
    for (std::size_t d = 0; d < to.size(); ++d) {
        if (to[d] == 1) continue;
        const bool repeated = d < more || from[d - more] == 1;
        if (ndim_ > 0 && repeated_[ndim_ - 1] == repeated) {
            size_[ndim_ - 1] *= to[d];
        } else if (ndim_ > 0 || !repeated) {  // a leading repeated axis only repeats the period
            size_[ndim_] = to[d];
            repeated_[ndim_++] = repeated;
        }
    }
    std::int64_t stride = 1;
    for (std::size_t d = ndim_; d-- > 0;) {
        stride_[d] = repeated_[d] ? 0 : stride;
        if (!repeated_[d]) stride *= size_[d];
        period_ *= size_[d];
    }
}

template <class T>
void Broadcast::load(const T* x, std::int64_t begin, std::int64_t n, T* out) const {
    if (ndim_ == 0) return void(std::fill_n(out, n, *x));
    const std::size_t last = ndim_ - 1;
    std::int64_t index[CATENA_MAX_NDIM];
    std::int64_t offset = 0;
    std::int64_t rest = begin % period_;
    for (std::size_t d = ndim_; d-- > 0; rest /= size_[d]) {
        index[d] = rest % size_[d];
        offset += index[d] * stride_[d];
    }
    while (n > 0) {
        const std::int64_t run = std::min(n, size_[last] - index[last]);
        if (repeated_[last]) std::fill_n(out, run, x[offset]);
        else std::copy_n(x + offset, run, out);
        out += run;
        n -= run;
        index[last] += run;
        offset += run * stride_[last];
        for (std::size_t d = last; index[d] == size_[d]; --d) {  // carry
            offset -= size_[d] * stride_[d];
            index[d] = 0;
            if (d == 0) break;
            ++index[d - 1];
            offset += stride_[d - 1];
        }
    }
}

namespace detail {

template <class T>
void broadcast_copy(catena_ctx* ctx, const T* x, Shape from, T* y, Shape to, bool add) {
    const Broadcast walk(from, to);
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        if (!add) return walk.load(x, begin, end - begin, y + begin);
        constexpr std::int64_t block = 1024;
        T values[block];
        for (std::int64_t b = begin; b < end; b += block) {
            const std::int64_t size = std::min(block, end - b);
            walk.load(x, b, size, values);
            for (std::int64_t i = 0; i < size; ++i) y[b + i] += values[i];
        }
    };
    parallel<Isa::baseline>(ctx, size_of(to), 1, body);
}

}  // namespace detail

#define CATENA_BROADCAST(T)                                                        \
    template void Broadcast::load(const T*, std::int64_t, std::int64_t, T*) const; \
    template void detail::broadcast_copy(catena_ctx*, const T*, Shape, T*, Shape, bool);
CATENA_EACH_TYPE(CATENA_BROADCAST)

}  // namespace catena::plugin
