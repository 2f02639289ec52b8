// Broadcasting at run time: a smaller tensor's elements, repeated in the order of a larger one.
#pragma once

#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// Iterates over x of shape `from` as if it had shape `to`. Merges adjacent axes of the same kind.
class Broadcast {
public:
    Broadcast() = default;
    Broadcast(Shape from, Shape to);
    // Element i of the large tensor is element i % period of this iteration.
    std::int64_t period() const { return period_; }

    // Sets out[0 .. n) to the elements from `begin` on. No extent may be 0.
    template <class T>
    void load(const T* x, std::int64_t begin, std::int64_t n, T* out) const;

private:
    std::size_t ndim_ = 0;
    std::int64_t size_[CATENA_MAX_NDIM];
    std::int64_t stride_[CATENA_MAX_NDIM];
    bool repeated_[CATENA_MAX_NDIM];
    std::int64_t period_ = 1;
};

namespace detail {
template <class T>
void broadcast_copy(catena_ctx* ctx, const T* x, Shape from, T* y, Shape to, bool add);
}

// Sets y of shape `to` to x of shape `from`, repeated; or adds it to y.
template <class Call, class T>
void broadcast_copy(const Call& call, const T* x, Shape from, T* y, Shape to, bool add) {
    detail::broadcast_copy(call.context(), x, from, y, to, add);
}

}  // namespace catena::plugin
