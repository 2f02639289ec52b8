/* Faults of infer(). */
#include "../../bad_plugins/module.h"

// infer_device_type fails: inference/pure
// infer() reports a device type that no device has.
// says: expected it to stay on the device of the call (1), got 999
INFERS(infer_device_type) {
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    y[0]->device_type = 999;
    return status;
}

// infer_dtype_text fails: inference/wrong-dtype fuzz/attributes fuzz/shapes
INFERS(infer_dtype_text) {
    if (x[0]->dtype.code != CATENA_CODE_FLOAT) return host->fail(ctx, CATENA_E_DTYPE, "bad dtype");
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}

// infer_impure fails: inference/pure
// infer() assumes that the outputs are zeroed.
INFERS(infer_impure) {
    if ((y[0]->ndim & 0xff) == 0xa5)
        return host->fail(ctx, CATENA_E_SHAPE, "[" NAME "] y: expected zeros, got a shape");
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}

// infer_overflow fails: inference/overflow
// infer() doubles the extents in 64-bit arithmetic and halves them again: large ones overflow.
INFERS(infer_overflow) {
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    for (int32_t d = 0; status == CATENA_OK && d < y[0]->ndim; ++d)
        y[0]->shape[d] = (int64_t)((uint64_t)x[0]->shape[d] * 2) / 2;
    return status;
}

// infer_rank_unchecked fails: inference/ranks
// infer() reads the second extent of inputs that have only one axis, past the end of the shape.
// once: inference/ranks
INFERS(infer_rank_unchecked) {
    const int64_t columns = x[0]->shape[1];
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    if (status == CATENA_OK && y[0]->ndim == 1 && columns == 5) y[0]->shape[0] += 1;
    return status;
}

// infer_ranks fails: inference/ranks fuzz/ranks
// infer() returns one axis more than the maximum.
INFERS(infer_ranks) {
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    if (x[0]->ndim == CATENA_MAX_NDIM) ++y[0]->ndim;
    return status;
}

// large_extents fails: inference/overflow fuzz/shapes
// infer() uses extents as indices of an array; large ones are out of bounds.
INFERS(large_extents) {
    static int counts[1 << 20];
    for (int32_t d = 0; d < x[0]->ndim; ++d) ++*(volatile int *)&counts[x[0]->shape[d]];
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}

static const catena_attr_spec attr_groups = {.struct_size = sizeof(catena_attr_spec),
                                             .kind = CATENA_ATTR_INT,
                                             .name = "groups",
                                             .doc = "parts that the first extent is divided into",
                                             .def = {CATENA_ATTR_INT, 1, {.i = 1}}};
INFER(infer_groups) {
    if (x[0]->ndim > 0 && x[0]->shape[0] % attrs[1].v.i != 0)
        return host->fail(ctx, CATENA_E_SHAPE, "[" NAME "] x: expected whole groups, got a rest");
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
// divides_by_zero fails: fuzz/attributes
// infer() divides by an attribute that may be 0.
SPOIL(divides_by_zero) {
    the_attrs[the_function.n_attrs++] = &attr_groups;
    the_function.infer = infer_groups;
}

INFER(infer_mutely) {
    if (attrs[0].v.f == 100) return CATENA_E_INVALID;
    for (int32_t d = 0; d < x[0]->ndim; ++d)
        if (x[0]->shape[d] == 255) return CATENA_E_SHAPE;
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
// no_examples fails: fuzz/attributes fuzz/shapes
// Refuses an extent of 255 and a scale of 100 without a message. The check must first find a valid
// call.
SPOIL(no_examples) {
    the_function.infer = infer_mutely;
    the_function.examples = NULL;
}

// reads_newer_host fails: skew/old-host
// infer() reads a service behind the end of the host's table.
INFERS(reads_newer_host) {
    void *const *newer = (void *const *)(host + 1);
    void *const volatile service = *(void *const volatile *)newer;
    (void)service;
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
