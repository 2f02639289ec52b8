// Shapes of elementwise functions, for any number of inputs.
#include "catena/plugin/elementwise.hpp"

#include <algorithm>

namespace catena::plugin::detail {

void fail_unretained(const char* function, const char* what, char port, std::size_t i) {
    plugin::fail(
        CATENA_E_INTERNAL, function, what,
        std::string(port == 'x' ? "inputs" : "outputs") + " that retain_" + port + " names",
        std::string(1, port) + "(" + std::to_string(i) + ")");
}
void fail_missing(const char* function, const char* what, std::size_t i) {
    plugin::fail(CATENA_E_INTERNAL, function, what, "inputs that has() says are there",
                 "x(" + std::to_string(i) + ")");
}

namespace {

void check_whole(const catena_function& f, const catena_value* attrs, catena_dtype dtype) {
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        if (f.attrs[i]->kind != CATENA_ATTR_FLOAT) continue;
        const double value = attrs[i].v.f;
        const double limit = dtype.bits == 32 ? 0x1p31 : 0x1p63;
        if (!(value >= -limit && value < limit) ||
            value != static_cast<double>(static_cast<std::int64_t>(value)))
            plugin::fail(CATENA_E_DTYPE, f.name, f.attrs[i]->name, "an " + text_of(dtype), value);
    }
}

// y grows in place to the shape that it and x broadcast to.
void broadcast(const catena_function& f, std::uint32_t input, const catena_meta& x,
               catena_meta& y) {
    const std::int32_t ndim = std::max(x.ndim, y.ndim);
    for (std::int32_t d = 0; d < ndim; ++d) {  // from the last axis
        const std::int64_t p = d < x.ndim ? x.shape[x.ndim - 1 - d] : 1;
        const std::int64_t q = d < y.ndim ? y.shape[y.ndim - 1 - d] : 1;
        if (p != q && p != 1 && q != 1)
            plugin::fail(
                CATENA_E_SHAPE, f.name, (std::string(f.inputs[input]->name) + ".shape").c_str(),
                "broadcastable to " + text_of(Shape(y.shape, static_cast<std::size_t>(y.ndim))),
                Shape(x.shape, static_cast<std::size_t>(x.ndim)));
    }
    if (x.ndim > y.ndim) {
        std::copy_backward(y.shape, y.shape + y.ndim, y.shape + x.ndim);
        std::fill(y.shape, y.shape + (x.ndim - y.ndim), 1);
        y.ndim = x.ndim;
    }
    for (std::int32_t d = 0; d < x.ndim; ++d) {
        std::int64_t& q = y.shape[y.ndim - 1 - d];
        if (q == 1) q = x.shape[x.ndim - 1 - d];
    }
}

}  // namespace

catena_status infer_elementwise(catena_ctx* ctx, const catena_function& f, bool whole,
                                const catena_value* attrs, const catena_meta* const* x,
                                catena_meta& y) noexcept {
    const catena_meta& first = *x[0];
    y.ndim = first.ndim;
    y.dtype = first.dtype;
    y.device_type = first.device_type;
    std::copy_n(first.shape, first.ndim, y.shape);
    bool equal = true;
    for (std::uint32_t i = 1; i < f.n_inputs; ++i)
        equal = equal && x[i]->ndim == first.ndim &&
                std::equal(first.shape, first.shape + first.ndim, x[i]->shape);
    whole = whole && first.dtype.code == CATENA_CODE_INT;
    if (equal && !whole) [[likely]]
        return CATENA_OK;
    return guarded(ctx, [&] {
        if (whole) check_whole(f, attrs, first.dtype);
        for (std::uint32_t i = 1; i < f.n_inputs; ++i) broadcast(f, i, *x[i], y);
    });
}

}  // namespace catena::plugin::detail
