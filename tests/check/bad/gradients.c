/* Faults of gradients, by kernels and by compositions of the host's functions. */
#include <math.h>

#include "../../bad_plugins/module.h"

AFTER(steeper, backward32, float, gx) {
    for (int64_t i = 0; i < n && call->req[0] == CATENA_REQ_WRITE; ++i) gx[i] *= 1.25f;
}
// kernel_gradient fails: gradients/kernel
SPOIL(kernel_gradient) {
    spoil_steeper();
    the_backward32.flags = CATENA_KERNEL_DETERMINISTIC;
}

// no_add fails: values/add
// The kernel declares CATENA_KERNEL_ADDS, but overwrites instead of adding.
INSTEAD(no_add, backward32) {
    static const uint8_t write[] = {CATENA_REQ_WRITE};
    catena_call other = *call;
    other.req = write;
    return backward32(ctx, &other);
}

static catena_attr_spec negative = {.struct_size = sizeof(catena_attr_spec),
                                    .kind = CATENA_ATTR_BOOL,
                                    .name = "negative",
                                    .doc = "the other sign",
                                    .def = {CATENA_ATTR_BOOL, 1, {.i = 0}}};
KERNELS(signed, size_of(call->y[0]),
        Y(0) = (T)(call->attrs[1].v.i != 0 ? -SCALE : SCALE) * X(0) * X(0))
// choice_gradient fails: gradients/kernel
// The gradient ignores a bool attribute that no example sets.
// says: negative=true
SPOIL(choice_gradient) {
    the_attrs[the_function.n_attrs++] = &negative;
    the_forward32.run = signed32, the_forward64.run = signed64;
}

static void only_float64(catena_status(CATENA_CALL *forward)(catena_ctx *, const catena_call *)) {
    the_forward64.run = forward;
    the_kernels[0] = &the_forward64, the_kernels[1] = &the_backward64;
    the_plugin.n_kernels = 2;
}
KERNELS(steep, size_of(call->y[0]), Y(0) = (T)(SCALE * sin(2000 * X(0))))
// gradient_steep fails: gradients/kernel
// y = sin(2000 x): finite differences detect the wrong gradient only with small steps.
// libs: m
SPOIL(gradient_steep) { only_float64(steep64); }
KERNELS(unknown, size_of(call->y[0]), Y(0) = (T)(SCALE * sin(1e7 * X(0))))
// gradient_unknown fails: nothing
// y = sin(10^7 x): finite differences cannot determine the gradient, so there is no verdict.
// skips: gradients/kernel
// libs: m
SPOIL(gradient_unknown) { only_float64(unknown64); }

// not_retained fails: gradients/retained
// Backward reads y if it is given, but the function retains only x.
AFTER(not_retained, backward32, float, gx) {
    if (call->y[0] == NULL) return;
    const float *y = data_of(call->y[0]);
    for (int64_t i = 0; i < n; ++i) gx[i] += 0 * y[i];
}

// retain_pointer fails: values/survives
// Backward reads a field of y, which is NULL because it is not retained, and ignores the value.
// options: --only values --only gradients
// says: it follows a NULL pointer, and a host gives backward NULL for y y (not in retain_y)
BEFORE(retain_pointer, backward32) { volatile uint32_t flags = call->y[0]->flags; }

static void retain_nothing(void) {
    the_function.retain_x = 0;
    the_backward32.flags = the_backward64.flags = CATENA_KERNEL_DETERMINISTIC;
}
KERNELS(copy, size_of(call->y[0]), Y(0) = X(0))
KERNELS(copy_back, size_of(call->x[0]), GX(0) = GY(0))
// retain_envelope fails: gradients/retained
// Backward takes the number of elements from x, which is not retained.
// says: it reads what is not retained: x (not in retain_x)
SPOIL(retain_envelope) {
    retain_nothing();
    the_forward32.run = copy32, the_forward64.run = copy64;
    the_backward32.run = copy_back32, the_backward64.run = copy_back64;
}
KERNELS(abs, size_of(call->y[0]), Y(0) = X(0) > 0 ? X(0) : -X(0))
KERNELS(abs_back, size_of(call->gx[0]), GX(0) = X(0) > 0 ? GY(0) : -GY(0))
// retain_forgotten fails: gradients/retained
// The gradient uses only the sign of x, which is not retained: NaN in x would not make it NaN.
// says: it reads what is not retained: x (not in retain_x)
SPOIL(retain_forgotten) {
    retain_nothing();
    the_forward32.run = abs32, the_forward64.run = abs64;
    the_backward32.run = abs_back32, the_backward64.run = abs_back64;
}

/* Another correct function: y = x w and s = x^2. */
static int missing_gs = 0, gw_alone = 1;
static catena_port_spec port_w = {sizeof(catena_port_spec), 0, "w", "factors", "T"};
static catena_port_spec port_s = {sizeof(catena_port_spec), 0, "s", "squares", "T"};
KERNELS(product, size_of(call->y[0]), Y(0) = X(0) * X(1); Y(1) = X(0) * X(0))
KERNELS(product_back, size_of(call->x[0]),
        if (call->gx[0] != NULL) GX(0) = GY(0) * X(1) + 2 * X(0) * GY_OR(1, missing_gs);
        if (call->gx[1] != NULL && (call->gx[0] != NULL || gw_alone)) GX(1) = GY(0) * X(0))
INFER(infer_unchecked) {
    for (uint32_t k = 0; k < n_y; ++k) infer_square(ctx, attrs, x, 1, y + k, 1);
    return CATENA_OK;
}
INFER(infer_equal) {
    int equal = x[0]->ndim == x[1]->ndim;
    for (int32_t d = 0; equal && d < x[0]->ndim; ++d) equal = x[0]->shape[d] == x[1]->shape[d];
    if (equal) return infer_unchecked(ctx, attrs, x, n_x, y, n_y);
    return host->fail(ctx, CATENA_E_SHAPE, "[" NAME "] w.shape: expected that of x, got another");
}
static void make_binary(void) {
    the_inputs[1] = &port_w;
    the_function.n_attrs = 0;
    the_function.n_inputs = 2;
    the_function.infer = infer_equal;
    the_examples[0] = "x=(2,3) w=(2,3)", the_examples[1] = "x=(4) w=(4)";
}
#define PRODUCT(name)                                                              \
    static void product_##name(void);                                              \
    SPOIL(name) {                                                                  \
        make_binary();                                                             \
        the_outputs[1] = &port_s;                                                  \
        the_function.n_outputs = 2;                                                \
        the_function.retain_x = 3;                                                 \
        the_forward32.run = product32, the_forward64.run = product64;              \
        the_backward32.run = product_back32, the_backward64.run = product_back64;  \
        the_backward32.flags = the_backward64.flags = CATENA_KERNEL_DETERMINISTIC; \
        product_##name();                                                          \
    }                                                                              \
    static void product_##name(void)

// good_product fails: nothing
PRODUCT(good_product) {}

// missing_gradient fails: gradients/missing
// A missing output gradient is treated as ones instead of zeros.
PRODUCT(missing_gradient) { missing_gs = 1; }

// targets fails: gradients/targets
// The gradient of w is written only if that of x is requested as well.
PRODUCT(targets) { gw_alone = 0; }

// shapes_unchecked fails: inference/wrong-shape inference/wrong-rank fuzz/shapes fuzz/ranks
// infer() assumes that w has the shape of x.
PRODUCT(shapes_unchecked) { the_function.infer = infer_unchecked; }

KERNELS(sum, size_of(call->y[0]), Y(0) = X(0) + X(1))
// addition_taken fails: schema/ports load/host
// Declares a function of its own for adding gradients; the host then refuses catena.add.
SPOIL(addition_taken) {
    make_binary();
    the_function.retain_x = 0;
    the_function.flags = CATENA_FUNCTION_ADDITION | CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    the_forward32.run = sum32, the_forward64.run = sum64;
    the_plugin.n_kernels = 2;
}

/* gx = factor * scale * x * gy */
static catena_status gradient_with(catena_ctx *ctx, const catena_gradient_call *call, double factor,
                                   catena_var *x) {
    const double value = factor * SCALE;
    catena_var *scaled;
    if (call->gy[0] == NULL) return CATENA_OK;
    const catena_status status = call_of(ctx, "catena.mul_constant", &value, x, NULL, &scaled);
    if (status != CATENA_OK) return status;
    return call_of(ctx, "catena.mul", NULL, scaled, call->gy[0], &call->gx[0]);
}

// gradient_factor fails: gradients/composed
// y = scale x^2, but the gradient is computed as scale x.
GRADIENTS(gradient_factor) { return gradient_with(ctx, call, 1, call->x[0]); }

GRADIENT(detached) {
    catena_var *x, *half;
    catena_status status = call_of(ctx, "org.example.frozen", NULL, call->x[0], NULL, &x);
    if (status != CATENA_OK) return status;
    /* frozen(x) = x^2 has no derivative, so that of frozen(x) / x = x is wrong. */
    status = call_of(ctx, "catena.div", NULL, x, call->x[0], &half);
    return status != CATENA_OK ? status : gradient_with(ctx, call, 2, half);
}
// gradient_detached fails: gradients/second-order
// The gradient has the right value, but only a part of its dependence on x is differentiable.
SPOIL(gradient_detached) {
    static catena_function frozen;
    static const char *example[] = {"x=(2,3)", NULL};
    frozen = the_function;
    frozen.name = "org.example.frozen";
    frozen.flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    frozen.retain_x = 0;
    frozen.examples = example;
    more_kernels[0] = the_forward32, more_kernels[1] = the_forward64;
    more_kernels[0].function = more_kernels[1].function = frozen.name;
    the_function.gradient = detached;
    the_functions[the_plugin.n_functions++] = &frozen;
    the_plugin.n_kernels = 6;
}

GRADIENT(unchecked) {
    const catena_callable *times = NULL;
    const catena_named_value value = {"value", {CATENA_ATTR_FLOAT, 1, {.f = 2 * SCALE}}};
    catena_var *product = NULL;
    if (host->find(ctx, "catena.mul_constant", &times) != CATENA_OK) return CATENA_E_INTERNAL;
    if (call_of(ctx, "catena.mul", NULL, call->x[0], call->gy[0], &product) != CATENA_OK)
        return CATENA_E_INTERNAL;
    host->call(ctx, times, &value, 1, &product, 1, call->gx, 1);
    return CATENA_OK;
}
// host_call_unchecked fails: faults/host-call
// gradient() does not check whether calls of the host succeed.
SPOIL(host_call_unchecked) { the_function.gradient = unchecked; }
