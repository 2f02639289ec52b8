/* A correct plugin in C or C++: y = scale x^2 in float32 and float64, with its gradient. A source of
 * bad plugins has a row for each of them, which changes a part of this one:
 *
 *   // no_version fails: schema/versions
 *   SPOIL(no_version) { the_function.version = 0; }
 *
 * The build compiles a source once per row, with BAD (the row's name) and BAD_NAME defined; see
 * rows.cmake. A row may override the macros in this file's #ifndef with "// compile: -D...". */
#ifndef MODULE_H
#define MODULE_H

#include <catena/abi.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define JOIN_OF(x, y) x##y
#define JOIN(x, y) JOIN_OF(x, y)

#ifndef NAME
#define NAME "org.example.square"
#endif
#ifndef ID
#define ID "org.example." TEXT(BAD)
#endif
#ifndef VERSION
#define VERSION "1.0.0"
#endif
#ifndef DEVICES
#define DEVICES "cpu"
#endif
#ifndef MAGIC
#define MAGIC \
    { 'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L' }
#endif
#ifndef MANIFEST_SIZE
#define MANIFEST_SIZE sizeof(catena_manifest)
#endif
#ifndef MAJOR
#define MAJOR CATENA_ABI_MAJOR
#endif
#ifndef MINOR_NEEDED
#define MINOR_NEEDED CATENA_TARGET_MINOR
#endif

#ifndef OWN_MANIFEST
__attribute__((section(CATENA_MANIFEST_SECTION), used))
CATENA_EXPORT const catena_manifest catena_manifest_v1 = {.magic = MAGIC,
                                                          .struct_size = MANIFEST_SIZE,
                                                          .abi_major = MAJOR,
                                                          .abi_minor_built = CATENA_ABI_MINOR,
                                                          .abi_minor_needed = MINOR_NEEDED,
                                                          .id = ID,
                                                          .version = VERSION,
                                                          .vendor = "nobody",
                                                          .license = "MIT",
                                                          .devices = DEVICES};
#endif

static const catena_host *host;

static inline int64_t size_of(const catena_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
    return n;
}
static inline void *data_of(const catena_tensor *t) {
    return (char *)t->dl.data + t->dl.byte_offset;
}
/* y = function(x0, x1), with the attribute "value" unless value is NULL; x1 NULL: one input. */
static inline catena_status call_of(catena_ctx *ctx, const char *function, const double *value,
                                    catena_var *x0, catena_var *x1, catena_var **y) {
    const catena_named_value attrs[] = {
        {"value", {CATENA_ATTR_FLOAT, 1, {.f = value == NULL ? 0 : *value}}}};
    catena_var *const x[] = {x0, x1};
    const catena_callable *callable;
    const catena_status status = host->find(ctx, function, &callable);
    if (status != CATENA_OK) return status;
    return host->call(ctx, callable, attrs, value != NULL, x, x1 == NULL ? 1 : 2, y, 1);
}

/* The heads of functions. */
#define RUN(name) static catena_status CATENA_CALL name(catena_ctx *ctx, const catena_call *call)
#define INFER(name)                                                                   \
    static catena_status CATENA_CALL name(catena_ctx *ctx, const catena_value *attrs, \
                                          const catena_meta *const *x, uint32_t n_x,  \
                                          catena_meta *const *y, uint32_t n_y)
#define GRADIENT(name) \
    static catena_status CATENA_CALL name(catena_ctx *ctx, const catena_gradient_call *call)

INFER(infer_square) {
    if (n_x != 1) return host->fail(ctx, CATENA_E_INVALID, "[" NAME "] x: expected one input");
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (int32_t d = 0; d < x[0]->ndim; ++d) y[0]->shape[d] = x[0]->shape[d];
    return CATENA_OK;
}

/* The kernels NAME32 and NAME64, which run a statement for i from 0 to n. It uses the elements
 * X(k), Y(k), GX(k), GY(k), where a missing gradient has zeros, and their type T. */
#define KERNELS(name, n, ...)                        \
    RUN(name##32) {                                  \
        typedef float T;                             \
        for (int64_t i = 0, end = n; i < end; ++i) { \
            __VA_ARGS__;                             \
        }                                            \
        return CATENA_OK;                            \
    }                                                \
    RUN(name##64) {                                  \
        typedef double T;                            \
        for (int64_t i = 0, end = n; i < end; ++i) { \
            __VA_ARGS__;                             \
        }                                            \
        return CATENA_OK;                            \
    }
#define X(k) ((const T *)data_of(call->x[k]))[i]
#define Y(k) ((T *)data_of(call->y[k]))[i]
#define GX(k) ((T *)data_of(call->gx[k]))[i]
#define GY_OR(k, missing) \
    (call->gy[k] == NULL ? (T)(missing) : ((const T *)data_of(call->gy[k]))[i])
#define GY(k) GY_OR(k, 0)
#define SCALE call->attrs[0].v.f

KERNELS(forward, size_of(call->y[0]), Y(0) = (T)SCALE * X(0) * X(0))
KERNELS(backward, call->gx[0] == NULL ? 0 : size_of(call->gx[0]),
        const T g = (T)(2 * SCALE) * X(0) * GY(0);
        GX(0) = call->req[0] == CATENA_REQ_ADD ? GX(0) + g : g)

/* These are not const, because a row may change any of them. */
static catena_port_spec port_x = {sizeof(catena_port_spec), 0, "x", "numbers", "T"};
static catena_port_spec port_y = {sizeof(catena_port_spec), 0, "y", "their squares", "T"};
static const catena_port_spec *the_inputs[] = {&port_x, NULL}, *the_outputs[] = {&port_y, NULL};
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
static const catena_attr_spec *the_attrs[] = {&attr_scale, NULL};
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
static catena_kernel the_forward32 = KERNEL(CATENA_PHASE_FORWARD, float32, forward32);
static catena_kernel the_forward64 = KERNEL(CATENA_PHASE_FORWARD, float64, forward64);
static catena_kernel the_backward32 = KERNEL(CATENA_PHASE_BACKWARD, float32, backward32);
static catena_kernel the_backward64 = KERNEL(CATENA_PHASE_BACKWARD, float64, backward64);
static catena_kernel more_kernels[2]; /* for copies */

static const catena_function *the_functions[] = {&the_function, NULL};
static catena_kernel *the_kernels[] = {&the_forward32,  &the_forward64,   &the_backward32,
                                       &the_backward64, &more_kernels[0], &more_kernels[1]};
static catena_plugin the_plugin = {.struct_size = sizeof(catena_plugin),
                                   .n_functions = 1,
                                   .n_kernels = 4,
                                   .functions = the_functions,
                                   .kernels = (const catena_kernel *const *)the_kernels};

/* A row with an entry of its own. */
#define ENTRY(name) \
    static const catena_plugin *JOIN(entry_, name)(const catena_host *table, catena_ctx *ctx)
/* A row that runs statements before the host reads the table. */
#define SPOIL(name)                    \
    static void spoil_##name(void);    \
    ENTRY(name) {                      \
        static int spoilt;             \
        host = table;                  \
        if (!spoilt++) spoil_##name(); \
        return &the_plugin;            \
    }                                  \
    static void spoil_##name(void)
/* A row that replaces one of the four kernels: INSTEAD(name, forward32) { ... return CATENA_OK; } */
#define INSTEAD(name, kernel)                      \
    RUN(run_##name);                               \
    SPOIL(name) { the_##kernel.run = run_##name; } \
    RUN(run_##name)
/* A row that runs statements before one of the kernels. */
#define BEFORE(name, kernel)                                             \
    static void before_##name(catena_ctx *ctx, const catena_call *call); \
    INSTEAD(name, kernel) {                                              \
        before_##name(ctx, call);                                        \
        return kernel(ctx, call);                                        \
    }                                                                    \
    static void before_##name(catena_ctx *ctx, const catena_call *call)
/* A row that changes the n elements of what a kernel computes: y or gx, elements of type T. */
#define AFTER(name, kernel, T, result)                                                        \
    static void after_##name(catena_ctx *ctx, const catena_call *call, T *result, int64_t n); \
    INSTEAD(name, kernel) {                                                                   \
        const catena_status status = kernel(ctx, call);                                       \
        const catena_tensor *t = call->result[0];                                             \
        if (t != NULL) after_##name(ctx, call, (T *)data_of(t), size_of(t));                  \
        return status;                                                                        \
    }                                                                                         \
    static void after_##name(catena_ctx *ctx, const catena_call *call, T *result, int64_t n)
/* A row with another infer(). */
#define INFERS(name)                                   \
    INFER(infer_##name);                               \
    SPOIL(name) { the_function.infer = infer_##name; } \
    INFER(infer_##name)

/* A row with kernels for forward only, and a gradient that is composed of the host's functions. */
#define GRADIENTS(name)                          \
    GRADIENT(gradient_##name);                   \
    SPOIL(name) {                                \
        the_function.gradient = gradient_##name; \
        the_plugin.n_kernels = 2;                \
    }                                            \
    GRADIENT(gradient_##name)

#ifndef OWN_ENTRY
ENTRY(BAD);
const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    return JOIN(entry_, BAD)(table, ctx);
}
#endif

#endif
