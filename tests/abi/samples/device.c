/* A device in plain C: its memory is the host's, its kernel doubles, and it offers a table to other
 * plugins. It is one of the kept binaries. */
#define _POSIX_C_SOURCE 200112L
#include <catena/abi.h>
#include <stdlib.h>
#include <string.h>

static const catena_host *host;
static int64_t blocks; /* allocated and not freed */

static catena_status CATENA_CALL count(catena_ctx *ctx, int32_t *n) {
    (void)ctx;
    *n = 2;
    return CATENA_OK;
}
static catena_status CATENA_CALL open(catena_ctx *ctx, int32_t ordinal, void **dev) {
    static int32_t devices[2];
    if (ordinal < 0 || ordinal > 1)
        return host->fail(ctx, CATENA_E_DEVICE, "[kept] ordinal: expected 0 or 1");
    devices[ordinal] = ordinal;
    *dev = &devices[ordinal];
    return CATENA_OK;
}
static void CATENA_CALL close(void *dev) { (void)dev; }
static int32_t CATENA_CALL supports_isa(void *dev, const char *isa) {
    (void)dev;
    return isa[0] == '\0';
}
static catena_status CATENA_CALL alloc(catena_ctx *ctx, void *dev, catena_stream *stream,
                                       uint64_t bytes, void **data) {
    (void)dev, (void)stream;
    if (posix_memalign(data, 64, bytes > 0 ? bytes : 1) != 0)
        return host->fail(ctx, CATENA_E_NOMEM, "[kept] out of memory");
    ++blocks;
    return CATENA_OK;
}
static void CATENA_CALL release(void *dev, catena_stream *stream, void *data, uint64_t bytes) {
    (void)dev, (void)stream, (void)bytes;
    free(data);
    --blocks;
}
static catena_status CATENA_CALL copy(catena_ctx *ctx, void *dev, catena_stream *stream, void *dst,
                                      const void *src, uint64_t bytes, int32_t direction) {
    (void)ctx, (void)dev, (void)stream, (void)direction;
    memcpy(dst, src, bytes);
    return CATENA_OK;
}
static catena_status CATENA_CALL sync(catena_ctx *ctx, void *dev) {
    (void)ctx, (void)dev;
    return CATENA_OK;
}
static const catena_backend backend = {.struct_size = sizeof backend,
                                       .name = "kept",
                                       .doc = "A device in host memory",
                                       .dlpack_type = 12, /* kDLExtDev */
                                       .count = count,
                                       .open = open,
                                       .close = close,
                                       .supports_isa = supports_isa,
                                       .alloc = alloc,
                                       .free = release,
                                       .copy = copy,
                                       .sync = sync};

typedef struct kept_blocks {
    uint32_t struct_size;
    uint32_t reserved;
    int64_t(CATENA_CALL *blocks)(void);
} kept_blocks;
static int64_t CATENA_CALL count_blocks(void) { return blocks; }
static const kept_blocks blocks_table = {sizeof blocks_table, 0, count_blocks};
static const catena_extension extension = {sizeof extension, CATENA_PRIORITY_PORTABLE,
                                           "org.example.blocks/1", "kept", &blocks_table};
static const catena_extension of_no_device = {sizeof of_no_device, CATENA_PRIORITY_PORTABLE,
                                              "org.example.anywhere/1", "", &blocks_table};

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    (void)ctx, (void)attrs, (void)n_x, (void)n_y;
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (int32_t i = 0; i < x[0]->ndim; ++i) y[0]->shape[i] = x[0]->shape[i];
    return CATENA_OK;
}
static catena_status CATENA_CALL twice(catena_ctx *ctx, const catena_call *call) {
    const catena_dl_tensor *x = &call->x[0]->dl, *y = &call->y[0]->dl;
    const double *from = (const double *)(const void *)((const char *)x->data + x->byte_offset);
    double *to = (double *)(void *)((char *)y->data + y->byte_offset);
    if (call->dev == NULL || *(int32_t *)call->dev != call->device_id)
        return host->fail(ctx, CATENA_E_DEVICE, "[org.example.c.twice] another device");
    for (uint64_t i = 0; i < call->x[0]->nbytes / sizeof(double); ++i) to[i] = 2 * from[i];
    return CATENA_OK;
}
static const catena_port_spec x = {sizeof x, 0, "x", "", "T"}, y = {sizeof y, 0, "y", "", "T"};
static const catena_port_spec *const inputs[] = {&x}, *const outputs[] = {&y};
static const catena_function function = {.struct_size = sizeof function,
                                         .flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE,
                                         .name = "org.example.c.twice",
                                         .doc = "y = 2 x",
                                         .version = 1,
                                         .n_inputs = 1,
                                         .n_outputs = 1,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .infer = infer};
static const catena_dtype float64 = {CATENA_CODE_FLOAT, 64, 1};
static const catena_kernel kernel = {.struct_size = sizeof kernel,
                                     .flags = CATENA_KERNEL_DETERMINISTIC,
                                     .phase = CATENA_PHASE_FORWARD,
                                     .function = "org.example.c.twice",
                                     .version_min = 1,
                                     .version_max = 1,
                                     .device = "kept",
                                     .isa = "",
                                     .types = &float64,
                                     .n_types = 1,
                                     .run = twice,
                                     .name = "plain"};

static const catena_function *const functions[] = {&function};
static const catena_kernel *const kernels[] = {&kernel};
static const catena_backend *const backends[] = {&backend};
static const catena_extension *const extensions[] = {&extension, &of_no_device};
static const catena_plugin plugin = {.struct_size = sizeof plugin,
                                     .n_functions = 1,
                                     .n_kernels = 1,
                                     .n_backends = 1,
                                     .n_extensions = 2,
                                     .functions = functions,
                                     .kernels = kernels,
                                     .backends = backends,
                                     .extensions = extensions};

__attribute__((section(CATENA_MANIFEST_SECTION)))
const catena_manifest catena_manifest_v1 = {.magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
                                            .struct_size = sizeof catena_manifest_v1,
                                            .abi_major = CATENA_ABI_MAJOR,
                                            .abi_minor_built = CATENA_ABI_MINOR,
                                            .abi_minor_needed = CATENA_TARGET_MINOR,
                                            .id = "org.example.c.device",
                                            .version = "1.0.0",
                                            .devices = "kept"};

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    (void)ctx;
    host = table;
    return &plugin;
}
