/* Parts of the sample plugins, whose functions compute y of the shape of x. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <catena/abi.h>

static const catena_host *host;

static inline int64_t size_of(const catena_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
    return n;
}
static inline void *data_of(const catena_tensor *t) {
    return (char *)t->dl.data + t->dl.byte_offset;
}
static inline float *floats(const catena_tensor *t) { return (float *)data_of(t); }
static inline catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                              const catena_meta *const *x, uint32_t n_x,
                                              catena_meta *const *y, uint32_t n_y) {
    (void)ctx, (void)attrs, (void)n_x, (void)n_y;
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (int32_t i = 0; i < x[0]->ndim; ++i) y[0]->shape[i] = x[0]->shape[i];
    return CATENA_OK;
}

static const catena_port_spec x = {sizeof x, 0, "x", "", "T"}, y = {sizeof y, 0, "y", "", "T"};
static const catena_port_spec *const inputs[] = {&x}, *const outputs[] = {&y};
static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1};

#define FUNCTION(id, text)                                                             \
    .struct_size = sizeof(catena_function), .name = "org.example.c." id, .doc = text,  \
    .version = 1, .n_inputs = 1, .n_outputs = 1, .inputs = inputs, .outputs = outputs, \
    .infer = infer
#define KERNEL_FOR(device_text, dtype, which, id, body)                                         \
    .struct_size = sizeof(catena_kernel), .flags = CATENA_KERNEL_DETERMINISTIC, .phase = which, \
    .priority = CATENA_PRIORITY_REFERENCE, .function = "org.example.c." id, .version_min = 1,   \
    .version_max = 1, .device = device_text, .isa = "", .types = &dtype, .n_types = 1,          \
    .run = body, .name = "plain"
#define KERNEL(which, id, body) KERNEL_FOR("cpu", float32, which, id, body)

/* The manifest, and the entry, which returns `plugin`. */
#define SAMPLE(name, devices_text)                                                                 \
    __attribute__((section(CATENA_MANIFEST_SECTION)))                                              \
    const catena_manifest catena_manifest_v1 = {.magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'}, \
                                                .struct_size = sizeof catena_manifest_v1,          \
                                                .abi_major = CATENA_ABI_MAJOR,                     \
                                                .abi_minor_built = CATENA_ABI_MINOR,               \
                                                .abi_minor_needed = CATENA_TARGET_MINOR,           \
                                                .id = "org.example.c." name,                       \
                                                .version = "1.0.0",                                \
                                                .devices = devices_text};                          \
    const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table,              \
                                                            catena_ctx *ctx) {                     \
        (void)ctx;                                                                                 \
        host = table;                                                                              \
        return &plugin;                                                                            \
    }

#endif
