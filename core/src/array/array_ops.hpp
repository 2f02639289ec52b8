// Operations on array bodies: creation, memory, views, versions, read-only flags.
#pragma once

#include "registry/registry.hpp"

#include <catena/core/extend/order.hpp>

namespace catena {

// Fields that few arrays need.
struct ArrayExtra {
    SmallVector<Queue*, 2> readers;  // other queues that read since the last write
    std::function<void()> release;   // called when foreign memory is no longer used
    PinnedPool* pinned = nullptr;    // owner of a pinned block, or null
};
ArrayExtra& extra_of(ArrayBody& body);

// The thread's innermost using_stream scope, or null. current_queue() uses the scopes.
extern constinit
    __attribute__((tls_model("initial-exec"))) thread_local const using_stream* streams;
Queue& queue_in_scopes(DeviceState& device) noexcept;
inline Queue& current_queue(DeviceState& device) noexcept {
    return streams ? queue_in_scopes(device) : device.main();
}
// Waits until the host may read or write the array in memory that it can access.
void before_host(ArrayBody& body, bool writes);
// Returns the memory to its allocator, pool or owner, ordered after all uses.
void give_back_memory(ArrayBody& body) noexcept;

// Returns an unsealed body without memory. Set meta.dtype, ndim and shape, then call shape_known().
Ref<ArrayBody> new_body(DeviceState& device);
// Returns a sealed body without memory. Throws MemoryError if the shape is too large.
Ref<ArrayBody> make_body(const Shape& shape, Dtype dtype, DeviceState& device);
Array empty_on(Queue& queue, const Shape& shape, Dtype dtype);
// Completes the descriptors from meta. Returns false if the shape is invalid or too large.
bool shape_known(ArrayBody& body);
// Allocates memory for the body, for work on the queue.
inline void allocate(ArrayBody& body, Queue& queue) {
    CachingAllocator* pool = queue.pool.load(std::memory_order_relaxed);
    body.block = pool->allocate(body.tensor.nbytes, body.capacity);
    body.home = pool;
    body.tensor.dl.data = body.block;
    body.queue.store(&queue, std::memory_order_relaxed);
    body.ticket = queue.now();
}
// Returns the value of catena_tensor.align_log2: at most 6, for 64 bytes.
inline std::uint32_t alignment_of(const void* data) noexcept {
    return static_cast<std::uint32_t>(
        std::min(std::countr_zero(reinterpret_cast<std::uintptr_t>(data)), 6));
}
// Makes view a view of source's memory, with the shape in view.meta.
void alias(ArrayBody& view, const Ref<ArrayBody>& source);
// Replaces an array by one of the same shape without data, if there is memory for the new body.
void make_shell(Array& array) noexcept;
inline bool has_memory(const ArrayBody& body) noexcept { return body.block || body.base; }
// Returns the number of writes in place, which shows a graph whether a retained array has changed.
inline std::uint32_t version_of(const ArrayBody& body) noexcept {
    return body.base ? body.base->version : body.version;
}
inline void drop_memory(ArrayBody& body) noexcept {
    CachingAllocator* home = body.home;
    if (home && body.queue.load(std::memory_order_relaxed) == &home->queue &&
        !body.extra.load(std::memory_order_relaxed)) [[likely]] {
        home->free(body.block, body.capacity);
        body.block = nullptr;
        body.home = nullptr;
    } else if (body.block) {
        give_back_memory(body);
    }
    if (body.base) body.base->release();
    body.base = nullptr;
}
inline bool same_kind(const ArrayBody& a, const ArrayBody& b) noexcept {
    return same(a.meta.dtype, b.meta.dtype) && a.meta.ndim == b.meta.ndim && a.device == b.device &&
           std::equal(a.meta.shape, a.meta.shape + a.meta.ndim, b.meta.shape);
}
inline Array empty_like(const ArrayBody& like, Queue& queue) {
    Ref<ArrayBody> body = new_body(queue.device);
    body->meta = like.meta;
    shape_known(*body);
    allocate(*body, queue);
    return Array(std::move(body));
}
// Returns the elements in host memory: in place, or copied to `staging`, which it allocates.
const void* on_host(const ArrayBody& body, std::unique_ptr<char[]>& staging);

}  // namespace catena
