/* A backend without a device. With EXITS_IN > 0 it has one, and ends the process: 1 in count(),
 * 2 in open(), 3 in get_extension(), 4 in supports_isa(), 5 in deinit(). */
#define _ISOC11_SOURCE /* aligned_alloc() */
#define MODULE_ID "org.example.dry"
#include "../../bad_plugins/module.h"

#include <stdlib.h>

#ifndef EXITS_IN
#define EXITS_IN 0
#endif

static const catena_host *services;

static catena_status CATENA_CALL count(catena_ctx *ctx, int32_t *n) {
    if (EXITS_IN == 1) exit(0);
    *n = EXITS_IN > 1 ? 1 : 7;
    if (EXITS_IN > 1) return CATENA_OK;
    return services->fail(ctx, CATENA_E_DEVICE, "the driver is not there");
}
static catena_status CATENA_CALL open(catena_ctx *ctx, int32_t ordinal, void **dev) {
    (void)ordinal, (void)dev;
    if (EXITS_IN == 2) exit(0);
    if (EXITS_IN > 2) return CATENA_OK;
    return services->fail(ctx, CATENA_E_DEVICE, "nothing to open");
}
static void CATENA_CALL close(void *dev) { (void)dev; }
static int32_t CATENA_CALL supports_isa(void *dev, const char *isa) {
    (void)dev, (void)isa;
    if (EXITS_IN == 4) exit(0);
    return 0;
}
static const void *CATENA_CALL get_extension(void *dev, const char *id) {
    (void)dev, (void)id;
    if (EXITS_IN == 3) exit(0);
    return NULL;
}
static void CATENA_CALL deinit(void) {
    if (EXITS_IN == 5) exit(0);
}
static catena_status CATENA_CALL alloc(catena_ctx *ctx, void *dev, catena_stream *stream,
                                       uint64_t bytes, void **data) {
    (void)ctx, (void)dev, (void)stream;
    if (EXITS_IN > 0) *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return EXITS_IN > 0 && *data != NULL ? CATENA_OK : CATENA_E_NOMEM;
}
static void CATENA_CALL release(void *dev, catena_stream *stream, void *data, uint64_t bytes) {
    (void)dev, (void)stream, (void)bytes;
    free(data);
}
static catena_status CATENA_CALL copy(catena_ctx *ctx, void *dev, catena_stream *stream, void *dst,
                                      const void *src, uint64_t bytes, int32_t direction) {
    (void)ctx, (void)dev, (void)stream, (void)dst, (void)src, (void)bytes, (void)direction;
    return CATENA_E_DEVICE;
}
static catena_status CATENA_CALL sync(catena_ctx *ctx, void *dev) {
    (void)ctx, (void)dev;
    return CATENA_OK;
}

static const catena_backend backend = {.struct_size = sizeof(catena_backend),
                                       .name = "dry",
                                       .doc = "a bed without a river",
                                       .dlpack_type = 12,
                                       .count = count,
                                       .open = open,
                                       .close = close,
                                       .supports_isa = supports_isa,
                                       .alloc = alloc,
                                       .free = release,
                                       .copy = copy,
                                       .sync = sync,
                                       .get_extension = get_extension};
static const catena_backend *const backends[] = {&backend};

/* A function without inputs, with a kernel for the instruction set "fast". */
static catena_status CATENA_CALL infer_zero(catena_ctx *ctx, const catena_value *attrs,
                                            const catena_meta *const *x, uint32_t n_x,
                                            catena_meta *const *y, uint32_t n_y) {
    static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1};
    (void)ctx, (void)attrs, (void)x, (void)n_x, (void)n_y, (void)inputs;
    y[0]->ndim = 0;
    y[0]->dtype = float32;
    return CATENA_OK;
}
static const catena_function zero = {.struct_size = sizeof(catena_function),
                                     .name = "test.zero",
                                     .doc = "",
                                     .version = 1,
                                     .n_outputs = 1,
                                     .outputs = outputs,
                                     .infer = infer_zero};
static const catena_dtype types[] = {{CATENA_CODE_FLOAT, 32, 1}};
static const catena_kernel fast_zero = {.struct_size = sizeof(catena_kernel),
                                        .phase = CATENA_PHASE_FORWARD,
                                        .function = "test.zero",
                                        .version_min = 1,
                                        .version_max = 1,
                                        .device = "dry",
                                        .isa = "fast",
                                        .types = types,
                                        .n_types = 1,
                                        .run = run};
static const catena_function *const functions[] = {&zero};
static const catena_kernel *const kernels[] = {&fast_zero};
static const catena_plugin table = {.struct_size = sizeof(catena_plugin),
                                    .n_functions = EXITS_IN > 0,
                                    .n_kernels = EXITS_IN > 0,
                                    .n_backends = 1,
                                    .functions = functions,
                                    .kernels = kernels,
                                    .backends = backends,
                                    .deinit = deinit};

ENTRY {
    (void)ctx;
    services = host;
    return &table;
}
