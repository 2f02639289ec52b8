// Uses of an array's memory, in order with other work. For libraries that extend the core.
#pragma once

#include <catena/core/extend/queue.hpp>

namespace catena {

// Returns the body. Throws if the handle is empty, or if the array has only a shape.
ArrayBody& need_memory(const Array& array);
inline void* memory_of(const ArrayBody& body) noexcept {
    return static_cast<char*>(body.tensor.dl.data) + body.tensor.dl.byte_offset;
}
inline ArrayBody& owner_of(ArrayBody& body) noexcept { return body.base ? *body.base : body; }

void read_elsewhere(ArrayBody& owner, Queue& queue);
void write_elsewhere(ArrayBody& owner, Queue& queue);
// Call it before work on the queue reads the array.
inline void before_read(ArrayBody& body, Queue& queue) {
    ArrayBody& owner = owner_of(body);
    if (owner.queue.load(std::memory_order_acquire) != &queue) [[unlikely]]
        read_elsewhere(owner, queue);
}
// Call it before work on the queue writes the array.
inline void before_write(ArrayBody& body, Queue& queue) {
    ArrayBody& owner = owner_of(body);
    if (owner.queue.load(std::memory_order_acquire) != &queue ||
        owner.extra.load(std::memory_order_acquire)) [[unlikely]]
        write_elsewhere(owner, queue);
}
// Call it after work that writes the array was submitted to the queue with that ticket.
void after_write(ArrayBody& body, Queue& queue, std::uint64_t ticket) noexcept;
inline void written(ArrayBody& body) noexcept { ++(body.base ? *body.base : body).version; }
// Marks a tensor read-only. Kernels write only results, until they have run, and updated inputs.
inline void seal(ArrayBody& body) noexcept { body.tensor.flags |= CATENA_TENSOR_READONLY; }
inline void unseal(ArrayBody& body) noexcept {
    body.tensor.flags &= ~std::uint32_t{CATENA_TENSOR_READONLY};
}
// Whether a recording's memory holds the array, so that each launch writes it again.
bool is_recorded(const ArrayBody& body) noexcept;
// Copies from host memory, which the caller may reuse afterwards.
void copy_from_host(Queue& queue, ArrayBody& to, const void* bytes);
// Throws InvalidError for an empty handle.
Queue& queue_of(const Stream& stream);

}  // namespace catena
