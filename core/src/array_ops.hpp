// Bodies of arrays: how the core makes them.
#pragma once

#include "device_state.hpp"

#include <catena/core/array.hpp>

namespace catena {

// A body without memory, not sealed; fill in meta's dtype, ndim and shape, then call shape_known().
Ref<ArrayBody> new_body(DeviceState& device);
// Completes the descriptors from meta. False if no array can have this shape.
bool shape_known(ArrayBody& body);
// Gives it memory of its own.
void allocate(ArrayBody& body);
// A view of source's memory with the shape in view's meta.
void alias(ArrayBody& view, const Ref<ArrayBody>& source);
// The same shape without memory: what a graph remembers of an array that nobody needs.
Array shell_of(Array array);
inline bool has_memory(const ArrayBody& body) noexcept { return body.block || body.base; }
// Retained arrays must not change under a graph: calls that write in place count it here.
inline std::uint32_t version_of(const ArrayBody& body) noexcept {
    return body.base ? body.base->version : body.version;
}
inline void written(ArrayBody& body) noexcept { ++(body.base ? *body.base : body).version; }
// What kernels may write: what they compute, from its making until they are done, and what they
// update in place. All else they see is read-only.
inline void seal(ArrayBody& body) noexcept { body.tensor.flags |= CATENA_TENSOR_READONLY; }
inline void unseal(ArrayBody& body) noexcept {
    body.tensor.flags &= ~std::uint32_t{CATENA_TENSOR_READONLY};
}
// Nobody else can see its memory.
inline bool exclusive(const ArrayBody& body) noexcept {
    return body.unique() && (!body.base || body.base->unique());
}
inline void* memory_of(const ArrayBody& body) noexcept {
    return static_cast<char*>(body.tensor.dl.data) + body.tensor.dl.byte_offset;
}
inline Array empty_like(const ArrayBody& like, DeviceState& device) {
    Ref<ArrayBody> body = new_body(device);
    body->meta.dtype = like.meta.dtype;
    body->meta.ndim = like.meta.ndim;
    for (int i = 0; i < like.meta.ndim; ++i) body->meta.shape[i] = like.meta.shape[i];
    shape_known(*body);
    allocate(*body);
    return Array(std::move(body));
}
inline Array empty_like(const ArrayBody& like) { return empty_like(like, *like.device); }

}  // namespace catena
