/* A second correct plugin: z = x w and s = x^2, with gradients. */
#ifndef PRODUCT_H
#define PRODUCT_H

#include "module.h"

static inline catena_status need_equal_shapes(catena_ctx *ctx, const catena_meta *const *x) {
    int equal = x[0]->ndim == x[1]->ndim;
    for (int32_t d = 0; equal && d < x[0]->ndim; ++d) equal = x[0]->shape[d] == x[1]->shape[d];
    if (equal) return CATENA_OK;
    return host->fail(ctx, CATENA_E_SHAPE, "[" NAME "] w.shape: expected that of x, got another");
}
static inline catena_status CATENA_CALL infer_product(catena_ctx *ctx, const catena_value *attrs,
                                                      const catena_meta *const *x, uint32_t n_x,
                                                      catena_meta *const *y, uint32_t n_y) {
    const catena_status status = need_equal_shapes(ctx, x);
    if (status != CATENA_OK) return status;
    (void)n_x, (void)n_y;
    infer_square(ctx, attrs, x, 1, y, 1);
    return infer_square(ctx, attrs, x, 1, y + 1, 1);
}

#define PRODUCT(T)                                                                         \
    static inline catena_status CATENA_CALL product_##T(catena_ctx *ctx,                   \
                                                        const catena_call *call) {         \
        const T *x = (const T *)data_of(call->x[0]), *w = (const T *)data_of(call->x[1]);  \
        T *z = (T *)data_of(call->y[0]), *s = (T *)data_of(call->y[1]);                    \
        (void)ctx;                                                                         \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i) {                         \
            z[i] = x[i] * w[i];                                                            \
            s[i] = x[i] * x[i];                                                            \
        }                                                                                  \
        return CATENA_OK;                                                                  \
    }                                                                                      \
    static inline catena_status CATENA_CALL product_back_##T(catena_ctx *ctx,              \
                                                             const catena_call *call) {    \
        const T *x = (const T *)data_of(call->x[0]), *w = (const T *)data_of(call->x[1]);  \
        const T *gz = call->gy[0] == NULL ? NULL : (const T *)data_of(call->gy[0]);        \
        const T *gs = call->gy[1] == NULL ? NULL : (const T *)data_of(call->gy[1]);        \
        T *gx = call->gx[0] == NULL ? NULL : (T *)data_of(call->gx[0]);                    \
        T *gw = call->gx[1] == NULL ? NULL : (T *)data_of(call->gx[1]);                    \
        (void)ctx;                                                                         \
        for (int64_t i = 0, n = size_of(call->x[0]); i < n; ++i) {                         \
            const T z = gz == NULL ? (T)0 : gz[i], s = gs == NULL ? (T)MISSING_GS : gs[i]; \
            if (gx != NULL) gx[i] = z * w[i] + 2 * x[i] * s;                               \
            if (gw != NULL && (gx != NULL || GW_ALONE)) gw[i] = z * x[i];                  \
        }                                                                                  \
        return CATENA_OK;                                                                  \
    }
/* Defaults, which a bad plugin may override. */
#ifndef MISSING_GS
#define MISSING_GS 0
#endif
#ifndef GW_ALONE
#define GW_ALONE 1
#endif
PRODUCT(float)
PRODUCT(double)

static catena_port_spec port_w = {sizeof(catena_port_spec), 0, "w", "factors", "T"};
static catena_port_spec port_s = {sizeof(catena_port_spec), 0, "s", "squares", "T"};

/* Replaces the function of module.h by this one; SPOIL calls it first. */
static inline void make_product(void) {
    static const catena_port_spec *const in[] = {&port_x, &port_w}, *const out[] = {&port_y,
                                                                                    &port_s};
    the_function.n_attrs = 0;
    the_function.inputs = in, the_function.outputs = out;
    the_function.n_inputs = the_function.n_outputs = 2;
    the_function.retain_x = 3;
    the_function.infer = infer_product;
    the_examples[0] = "x=(2,3) w=(2,3)", the_examples[1] = "x=(4) w=(4)";
    forward32.run = product_float, forward64.run = product_double;
    backward32.run = product_back_float, backward64.run = product_back_double;
    backward32.flags = backward64.flags = CATENA_KERNEL_DETERMINISTIC;
}

#endif
