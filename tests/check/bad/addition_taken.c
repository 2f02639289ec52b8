// Declares a function of its own for adding gradients; the host then refuses catena.add.
// expect: schema/ports load/host
#include "product.h"
static catena_status CATENA_CALL infer_sum(catena_ctx *ctx, const catena_value *attrs,
                                           const catena_meta *const *x, uint32_t n_x,
                                           catena_meta *const *y, uint32_t n_y) {
    const catena_status status = need_equal_shapes(ctx, x);
    if (status != CATENA_OK) return status;
    (void)n_x;
    return infer_square(ctx, attrs, x, 1, y, n_y);
}
#define SUM(T)                                                                            \
    static catena_status CATENA_CALL sum_##T(catena_ctx *ctx, const catena_call *call) {  \
        const T *x = (const T *)data_of(call->x[0]), *w = (const T *)data_of(call->x[1]); \
        T *y = (T *)data_of(call->y[0]);                                                  \
        (void)ctx;                                                                        \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i) y[i] = x[i] + w[i];      \
        return CATENA_OK;                                                                 \
    }
SUM(float)
SUM(double)
SPOIL {
    static const catena_port_spec *const in[] = {&port_x, &port_w};
    the_function.inputs = in;
    the_function.n_inputs = 2;
    the_function.n_attrs = 0;
    the_function.retain_x = 0;
    the_function.infer = infer_sum;
    the_function.flags = CATENA_FUNCTION_ADDITION | CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    the_examples[0] = "x=(2,3) w=(2,3)", the_examples[1] = "x=(4) w=(4)";
    forward32.run = sum_float, forward64.run = sum_double;
    the_plugin.n_kernels = 2;
}
