/* my_name: y = scale * x / (1 + x^2) on the CPU in float32, using only the ABI's headers. */
#include <catena/abi.h>

static const catena_host *host;

static int64_t size_of(const catena_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
    return n;
}
/* Returns the tensor's elements, or NULL for a missing tensor. */
static float *floats(const catena_tensor *t) {
    return t == NULL ? NULL : (float *)(void *)((char *)t->dl.data + t->dl.byte_offset);
}

/* Sets the shape, dtype and device of the output; runs before the kernel. */
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    (void)ctx, (void)attrs, (void)n_x, (void)n_y;
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (int32_t d = 0; d < x[0]->ndim; ++d) y[0]->shape[d] = x[0]->shape[d];
    return CATENA_OK;
}

/* Computes the elements [begin, end) of one call; the host calls it from several threads. */
static void CATENA_CALL forward_range(void *data, int64_t begin, int64_t end, int32_t slot) {
    const catena_call *call = data;
    const float scale = (float)call->attrs[0].v.f;
    const float *x = floats(call->x[0]);
    float *y = floats(call->y[0]);
    (void)slot;
    for (int64_t i = begin; i < end; ++i) y[i] = scale * x[i] / (1 + x[i] * x[i]);
}

static void CATENA_CALL backward_range(void *data, int64_t begin, int64_t end, int32_t slot) {
    const catena_call *call = data;
    const float scale = (float)call->attrs[0].v.f;
    const float *x = floats(call->x[0]), *gy = floats(call->gy[0]);
    float *gx = floats(call->gx[0]);
    (void)slot;
    for (int64_t i = begin; i < end; ++i) {
        const float d = 1 + x[i] * x[i];
        gx[i] = (gy == NULL ? 0 : gy[i]) * scale * (1 - x[i] * x[i]) / (d * d);
    }
}

static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    host->parallel_for(ctx, size_of(call->y[0]), 4096, forward_range, (void *)call);
    return CATENA_OK;
}

static catena_status CATENA_CALL backward(catena_ctx *ctx, const catena_call *call) {
    if (call->gx[0] == NULL) return CATENA_OK; /* not wanted */
    host->parallel_for(ctx, size_of(call->gx[0]), 4096, backward_range, (void *)call);
    return CATENA_OK;
}

/* T is any dtype that a kernel lists, and the same for both ports. */
static const catena_port_spec x = {sizeof x, 0, "x", "", "T"}, y = {sizeof y, 0, "y", "", "T"};
static const catena_port_spec *const inputs[] = {&x}, *const outputs[] = {&y};
static const catena_attr_spec scale = {.struct_size = sizeof scale,
                                       .kind = CATENA_ATTR_FLOAT,
                                       .name = "scale",
                                       .doc = "factor of the result",
                                       .def = {CATENA_ATTR_FLOAT, 1, {.f = 1}}};
static const catena_attr_spec *const attributes[] = {&scale};
static const char *const examples[] = {"x=(2,3)", "x=(4)[-3,3] scale=2", NULL};
static const catena_function function = {.struct_size = sizeof function,
                                         .name = "org.example.my_name",
                                         .doc = "y = scale * x / (1 + x^2)",
                                         .version = 1,
                                         .n_attrs = 1,
                                         .n_inputs = 1,
                                         .n_outputs = 1,
                                         .attrs = attributes,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .retain_x = 1, /* backward reads input 0 */
                                         .infer = infer,
                                         .examples = examples};

static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1};
#define KERNEL(which, function_of_it)                                                            \
    {                                                                                            \
        .struct_size = sizeof(catena_kernel), .flags = CATENA_KERNEL_DETERMINISTIC,              \
        .phase = which, .priority = CATENA_PRIORITY_PORTABLE, .function = "org.example.my_name", \
        .version_min = 1, .version_max = 1, .device = "cpu", .isa = "", .types = &float32,       \
        .n_types = 1, .run = function_of_it                                                      \
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

/* The part of the file that hosts read before they load it. */
__attribute__((section(CATENA_MANIFEST_SECTION)))
const catena_manifest catena_manifest_v1 = {.magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
                                            .struct_size = sizeof catena_manifest_v1,
                                            .abi_major = CATENA_ABI_MAJOR,
                                            .abi_minor_built = CATENA_ABI_MINOR,
                                            .abi_minor_needed = CATENA_TARGET_MINOR,
                                            .id = "org.example.my_name",
                                            .version = "0.1.0",
                                            .devices = "cpu"};

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    (void)ctx;
    host = table;
    return &plugin;
}
