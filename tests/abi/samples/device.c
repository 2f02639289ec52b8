/* A device in plain C: its memory is the host's, its kernel doubles, and it offers a table to other
 * plugins. It is one of the kept binaries. */
#define _POSIX_C_SOURCE 200112L
#include <stdlib.h>
#include <string.h>

#include "sample.h"

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

static catena_status CATENA_CALL twice(catena_ctx *ctx, const catena_call *call) {
    const double *from = (const double *)data_of(call->x[0]);
    double *to = (double *)data_of(call->y[0]);
    if (call->dev == NULL || *(int32_t *)call->dev != call->device_id)
        return host->fail(ctx, CATENA_E_DEVICE, "[org.example.c.twice] another device");
    for (uint64_t i = 0; i < call->x[0]->nbytes / sizeof(double); ++i) to[i] = 2 * from[i];
    return CATENA_OK;
}
static const catena_function function = {FUNCTION("twice", "y = 2 x"),
                                         .flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE};
static const catena_dtype float64 = {CATENA_CODE_FLOAT, 64, 1};
static const catena_kernel kernel = {
    KERNEL_FOR("kept", float64, CATENA_PHASE_FORWARD, "twice", twice)};

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

SAMPLE("device", "kept")
