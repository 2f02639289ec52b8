// expect: faults/allocation
// infer() does not check the result of malloc().
#include <stdlib.h>
#include <string.h>

#include "module.h"

static void *(*volatile allocate)(size_t) =
    malloc; /* volatile: the compiler would remove the calls */

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    int64_t *shape = allocate(sizeof x[0]->shape);
    memcpy(shape, x[0]->shape, (size_t)x[0]->ndim * sizeof *shape);
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    memcpy(y[0]->shape, shape, (size_t)x[0]->ndim * sizeof *shape);
    free(shape);
    return status;
}
SPOIL { the_function.infer = infer; }
