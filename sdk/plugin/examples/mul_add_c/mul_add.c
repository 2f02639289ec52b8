/* w = x * y + z in plain C: float32, equal shapes, using only the ABI's headers. */
#include <catena/abi.h>

static const catena_host *host;

static int64_t size_of(const catena_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
    return n;
}
static float *floats(const catena_tensor *t) {
    return t == NULL ? NULL : (float *)(void *)((char *)t->dl.data + t->dl.byte_offset);
}

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    (void)attrs, (void)n_y;
    for (uint32_t i = 1; i < n_x; ++i)
        for (int32_t d = 0; d < x[0]->ndim || d < x[i]->ndim; ++d)
            if (x[i]->ndim != x[0]->ndim || x[i]->shape[d] != x[0]->shape[d])
                return host->fail(ctx, CATENA_E_SHAPE,
                                  "[org.example.c.mul_add] x, y, z: expected "
                                  "equal shapes, got different ones");
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (int32_t d = 0; d < x[0]->ndim; ++d) y[0]->shape[d] = x[0]->shape[d];
    return CATENA_OK;
}

static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    const float *x = floats(call->x[0]), *y = floats(call->x[1]), *z = floats(call->x[2]);
    float *w = floats(call->y[0]);
    (void)ctx;
    for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i) w[i] = x[i] * y[i] + z[i];
    return CATENA_OK;
}

static catena_status CATENA_CALL backward(catena_ctx *ctx, const catena_call *call) {
    const float *x = floats(call->x[0]), *y = floats(call->x[1]), *gw = floats(call->gy[0]);
    float *gx = floats(call->gx[0]), *gy = floats(call->gx[1]), *gz = floats(call->gx[2]);
    (void)ctx;
    for (int64_t i = 0, n = size_of(call->x[0]); i < n; ++i) {
        const float g = gw == NULL ? 0 : gw[i];
        if (gx != NULL) gx[i] = g * y[i];
        if (gy != NULL) gy[i] = g * x[i];
        if (gz != NULL) gz[i] = g;
    }
    return CATENA_OK;
}

#define PORT(name) \
    { sizeof(catena_port_spec), 0, name, "", "T" }
static const catena_port_spec x = PORT("x"), y = PORT("y"), z = PORT("z"), w = PORT("w");
static const catena_port_spec *const inputs[] = {&x, &y, &z}, *const outputs[] = {&w};
static const catena_function function = {.struct_size = sizeof function,
                                         .name = "org.example.c.mul_add",
                                         .doc = "w = x * y + z",
                                         .version = 1,
                                         .n_inputs = 3,
                                         .n_outputs = 1,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .retain_x = 3,
                                         .infer = infer};

static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1};
#define KERNEL(which, function_of_it)                                                              \
    {                                                                                              \
        .struct_size = sizeof(catena_kernel), .flags = CATENA_KERNEL_DETERMINISTIC,                \
        .phase = which, .priority = CATENA_PRIORITY_PORTABLE, .function = "org.example.c.mul_add", \
        .version_min = 1, .version_max = 1, .device = "cpu", .isa = "", .types = &float32,         \
        .n_types = 1, .run = function_of_it                                                        \
    }
static const catena_kernel forward_kernel = KERNEL(CATENA_PHASE_FORWARD, forward);
static const catena_kernel backward_kernel = KERNEL(CATENA_PHASE_BACKWARD, backward);

static const catena_function *const functions[] = {&function};
static const catena_kernel *const kernels[] = {&forward_kernel, &backward_kernel};
static const catena_plugin plugin = {.struct_size = sizeof plugin,
                                     .n_functions = 1,
                                     .n_kernels = 2,
                                     .functions = functions,
                                     .kernels = kernels};

__attribute__((section(CATENA_MANIFEST_SECTION)))
const catena_manifest catena_manifest_v1 = {.magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
                                            .struct_size = sizeof catena_manifest_v1,
                                            .abi_major = CATENA_ABI_MAJOR,
                                            .abi_minor_built = CATENA_ABI_MINOR,
                                            .abi_minor_needed = CATENA_TARGET_MINOR,
                                            .id = "org.example.c.mul_add",
                                            .version = "1.0.0",
                                            .devices = "cpu"};

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    (void)ctx;
    host = table;
    return &plugin;
}
