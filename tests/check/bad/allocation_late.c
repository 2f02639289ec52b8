// expect: faults/allocation
// infer() does not check the result of its ninth malloc().
// options: --only faults/allocation
#include <stdlib.h>

#include "module.h"

static void *(*volatile allocate)(size_t) =
    malloc; /* volatile: the compiler would remove the calls */

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    for (int i = 1; i <= 9; ++i) {
        char *memory = allocate(64);
        if (memory == NULL && i < 9) return host->fail(ctx, CATENA_E_NOMEM, "[" NAME "] no memory");
        *(volatile char *)memory = 1;
        free(memory);
    }
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
SPOIL { the_function.infer = infer; }
