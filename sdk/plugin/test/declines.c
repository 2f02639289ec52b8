// Kernels for catena's functions: one declines all calls, one is for a device that does not exist.
#include <catena/abi.h>

static const catena_host *host;

static catena_status CATENA_CALL run(catena_ctx *ctx, const catena_call *call) {
    (void)call;
    return host->fail(ctx, CATENA_E_INTERNAL, "[declines] run: expected no call, got one");
}
static int32_t CATENA_CALL never(catena_ctx *ctx, const catena_call *call) {
    (void)ctx, (void)call;
    return 0;
}

static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1};
static const catena_kernel declining = {.struct_size = sizeof(catena_kernel),
                                        .phase = CATENA_PHASE_FORWARD,
                                        .priority = CATENA_PRIORITY_PORTABLE,
                                        .function = "catena.relu",
                                        .version_min = 1,
                                        .version_max = 1,
                                        .device = "cpu",
                                        .isa = "",
                                        .types = &float32,
                                        .n_types = 1,
                                        .supports = never,
                                        .run = run};
static const catena_kernel elsewhere = {.struct_size = sizeof(catena_kernel),
                                        .phase = CATENA_PHASE_FORWARD,
                                        .priority = CATENA_PRIORITY_PORTABLE,
                                        .function = "catena.tanh",
                                        .version_min = 1,
                                        .version_max = 1,
                                        .device = "nowhere",
                                        .isa = "",
                                        .types = &float32,
                                        .n_types = 1,
                                        .run = run};
static const catena_kernel *const kernels[] = {&declining, &elsewhere};
static const catena_plugin plugin = {
    .struct_size = sizeof(catena_plugin), .n_kernels = 2, .kernels = kernels};

__attribute__((section(CATENA_MANIFEST_SECTION), used))
CATENA_EXPORT const catena_manifest catena_manifest_v1 = {
    .magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
    .struct_size = sizeof catena_manifest_v1,
    .abi_major = CATENA_ABI_MAJOR,
    .abi_minor_built = CATENA_ABI_MINOR,
    .abi_minor_needed = CATENA_TARGET_MINOR,
    .id = "org.example.declines",
    .version = "1.0.0",
    .vendor = "nobody",
    .license = "MIT",
    .devices = "cpu,nowhere"};

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    (void)ctx;
    host = table;
    return &plugin;
}
