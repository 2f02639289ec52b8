// expect: fuzz/attributes
// infer() divides by an attribute that may be 0.
#include "module.h"

static const catena_attr_spec attr_groups = {sizeof(catena_attr_spec),
                                             CATENA_ATTR_INT,
                                             "groups",
                                             "parts that the first extent is divided into",
                                             0,
                                             0,
                                             {CATENA_ATTR_INT, 1, {.i = 1}},
                                             {0, 0, {.i = 0}},
                                             {0, 0, {.i = 0}},
                                             NULL};
static const catena_attr_spec *both[] = {&attr_scale, &attr_groups};

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    if (x[0]->ndim > 0 && x[0]->shape[0] % attrs[1].v.i != 0)
        return host->fail(ctx, CATENA_E_SHAPE, "[" NAME "] x: expected whole groups, got a rest");
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
SPOIL {
    the_function.attrs = both;
    the_function.n_attrs = 2;
    the_function.infer = infer;
}
