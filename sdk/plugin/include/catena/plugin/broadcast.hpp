// Broadcasting at run time: the elements of a smaller tensor, repeated in the order of a larger one.
#pragma once

#include <algorithm>

#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// Walks x of shape `from` as if it had shape `to`. Neighbouring axes of one sort are merged.
class Broadcast {
public:
    Broadcast() = default;
    Broadcast(Shape from, Shape to) {
        const std::size_t more = to.size() - from.size();
        for (std::size_t d = 0; d < to.size(); ++d) {
            if (to[d] == 1) continue;
            const bool repeated = d < more || from[d - more] == 1;
            if (ndim_ > 0 && repeated_[ndim_ - 1] == repeated) {
                size_[ndim_ - 1] *= to[d];
            } else if (ndim_ > 0 || !repeated) {  // leading repetition is the period's
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
    // Element i of the large tensor is element i % period of this walk.
    std::int64_t period() const { return period_; }

    // out[0 .. n) = the elements from `begin` on. No extent is 0.
    template <class T>
    void load(const T* x, std::int64_t begin, std::int64_t n, T* out) const {
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

private:
    std::size_t ndim_ = 0;
    std::int64_t size_[CATENA_MAX_NDIM];
    std::int64_t stride_[CATENA_MAX_NDIM];
    bool repeated_[CATENA_MAX_NDIM];
    std::int64_t period_ = 1;
};

// y of shape `to` = x of shape `from`, repeated; or added to y.
template <class Call, class T>
void broadcast_copy(const Call& call, const T* x, Shape from, T* y, Shape to, bool add) {
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
    parallel<Call::isa>(call.context(), size_of(to), 1, body);
}

}  // namespace catena::plugin
