/* A correct plugin: y = scale x^2 in float32 and float64, with its gradient. A bad plugin includes
 * this file and changes a part of it: SPOIL { the_function.version = 0; } */
#ifndef MODULE_H
#define MODULE_H

#include <catena/abi.h>

#define NAME "org.example.square"

static const catena_host *host;

static inline int64_t size_of(const catena_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
    return n;
}
static inline void *data_of(const catena_tensor *t) {
    return (char *)t->dl.data + t->dl.byte_offset;
}

static inline catena_status CATENA_CALL infer_square(catena_ctx *ctx, const catena_value *attrs,
                                                     const catena_meta *const *x, uint32_t n_x,
                                                     catena_meta *const *y, uint32_t n_y) {
    (void)attrs, (void)n_y;
    if (n_x != 1) return host->fail(ctx, CATENA_E_INVALID, "[" NAME "] x: expected one input");
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (int32_t d = 0; d < x[0]->ndim; ++d) y[0]->shape[d] = x[0]->shape[d];
    return CATENA_OK;
}

/* The kernels for one C type. */
#define SQUARE(T)                                                                           \
    static inline catena_status CATENA_CALL forward_##T(catena_ctx *ctx,                    \
                                                        const catena_call *call) {          \
        const T *x = (const T *)data_of(call->x[0]);                                        \
        T *y = (T *)data_of(call->y[0]);                                                    \
        (void)ctx;                                                                          \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i)                            \
            y[i] = (T)(call->attrs[0].v.f) * x[i] * x[i];                                   \
        return CATENA_OK;                                                                   \
    }                                                                                       \
    static inline catena_status CATENA_CALL backward_##T(catena_ctx *ctx,                   \
                                                         const catena_call *call) {         \
        const T *x = (const T *)data_of(call->x[0]);                                        \
        (void)ctx;                                                                          \
        if (call->gx[0] == NULL) return CATENA_OK;                                          \
        T *gx = (T *)data_of(call->gx[0]);                                                  \
        for (int64_t i = 0, n = size_of(call->gx[0]); i < n; ++i) {                         \
            const T gy = call->gy[0] == NULL ? (T)0 : ((const T *)data_of(call->gy[0]))[i]; \
            const T g = (T)(2 * call->attrs[0].v.f) * x[i] * gy;                            \
            gx[i] = call->req[0] == CATENA_REQ_ADD ? gx[i] + g : g;                         \
        }                                                                                   \
        return CATENA_OK;                                                                   \
    }
SQUARE(float)
SQUARE(double)

/* These are not const, because SPOIL may change any of them. */
static catena_port_spec port_x = {sizeof(catena_port_spec), 0, "x", "numbers", "T"};
static catena_port_spec port_y = {sizeof(catena_port_spec), 0, "y", "their squares", "T"};
static const catena_port_spec *the_inputs[] = {&port_x}, *the_outputs[] = {&port_y};
static catena_attr_spec attr_scale = {sizeof(catena_attr_spec),
                                      CATENA_ATTR_FLOAT,
                                      "scale",
                                      "a factor",
                                      CATENA_ATTR_RANGED,
                                      0,
                                      {CATENA_ATTR_FLOAT, 1, {.f = 1}},
                                      {CATENA_ATTR_FLOAT, 1, {.f = -100}},
                                      {CATENA_ATTR_FLOAT, 1, {.f = 100}},
                                      NULL};
static const catena_attr_spec *the_attrs[] = {&attr_scale};
static const char *the_examples[] = {"x=(2,3)", "x=(4) scale=0.5", NULL};

static catena_function the_function = {.struct_size = sizeof(catena_function),
                                       .name = NAME,
                                       .doc = "y = scale x^2",
                                       .version = 1,
                                       .n_attrs = 1,
                                       .n_inputs = 1,
                                       .n_outputs = 1,
                                       .attrs = the_attrs,
                                       .inputs = the_inputs,
                                       .outputs = the_outputs,
                                       .retain_x = 1,
                                       .infer = infer_square,
                                       .examples = the_examples};

static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1},
                          float64 = {CATENA_CODE_FLOAT, 64, 1};
#define KERNEL(which, dtype, function_of_it)                                                      \
    {                                                                                             \
        .struct_size = sizeof(catena_kernel),                                                     \
        .flags = CATENA_KERNEL_DETERMINISTIC |                                                    \
                 (which == CATENA_PHASE_BACKWARD ? CATENA_KERNEL_ADDS : 0u),                      \
        .phase = which, .priority = CATENA_PRIORITY_PORTABLE, .function = NAME, .version_min = 1, \
        .version_max = 1, .device = "cpu", .isa = "", .types = &(dtype), .n_types = 1,            \
        .run = function_of_it                                                                     \
    }
static catena_kernel forward32 = KERNEL(CATENA_PHASE_FORWARD, float32, forward_float);
static catena_kernel forward64 = KERNEL(CATENA_PHASE_FORWARD, float64, forward_double);
static catena_kernel backward32 = KERNEL(CATENA_PHASE_BACKWARD, float32, backward_float);
static catena_kernel backward64 = KERNEL(CATENA_PHASE_BACKWARD, float64, backward_double);

static const catena_function *the_functions[] = {&the_function, NULL};
static const catena_kernel *the_kernels[] = {&forward32,  &forward64, &backward32,
                                             &backward64, NULL,       NULL};
static catena_plugin the_plugin = {.struct_size = sizeof(catena_plugin),
                                   .n_functions = 1,
                                   .n_kernels = 4,
                                   .functions = the_functions,
                                   .kernels = the_kernels};

/* A plugin with a manifest of its own defines OWN_MANIFEST. */
#define MANIFEST(id_text, version_text, devices_text)          \
    __attribute__((section(CATENA_MANIFEST_SECTION), used))    \
    CATENA_EXPORT const catena_manifest catena_manifest_v1 = { \
        .magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},     \
        .struct_size = sizeof catena_manifest_v1,              \
        .abi_major = CATENA_ABI_MAJOR,                         \
        .abi_minor_built = CATENA_ABI_MINOR,                   \
        .abi_minor_needed = CATENA_TARGET_MINOR,               \
        .id = id_text,                                         \
        .version = version_text,                               \
        .vendor = "nobody",                                    \
        .license = "MIT",                                      \
        .devices = devices_text};
#ifndef OWN_MANIFEST
MANIFEST("org.example.bad", "1.0.0", "cpu")
#endif

/* A plugin with an entry of its own defines OWN_ENTRY. */
#ifndef OWN_ENTRY
static void spoil(void);
const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    static int spoilt;
    (void)ctx;
    host = table;
    if (!spoilt++) spoil();
    return &the_plugin;
}
#define SPOIL static void spoil(void)
#endif

#endif
