/* Shared by the test modules: a manifest, and macros for functions, kernels and the entry. A
 * module may define macros that make parts of it invalid before it includes this file. */
#ifndef MODULE_H
#define MODULE_H

#include <catena/abi.h>

#ifndef MODULE_MAGIC
#define MODULE_MAGIC \
    { 'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L' }
#endif
#ifndef MODULE_MANIFEST_SIZE
#define MODULE_MANIFEST_SIZE sizeof(catena_manifest)
#endif
#ifndef MODULE_MAJOR
#define MODULE_MAJOR CATENA_ABI_MAJOR
#endif
#ifndef MODULE_MINOR
#define MODULE_MINOR CATENA_ABI_MINOR
#endif
#ifndef MODULE_DEVICES
#define MODULE_DEVICES ""
#endif

#ifdef MODULE_ID
__attribute__((section(CATENA_MANIFEST_SECTION), used))
const catena_manifest catena_manifest_v1 = {MODULE_MAGIC,
                                            MODULE_MANIFEST_SIZE,
                                            MODULE_MAJOR,
                                            0,
                                            MODULE_MINOR,
                                            0,
                                            0,
                                            MODULE_ID,
                                            "1.2",
                                            "nobody",
                                            "MIT",
                                            MODULE_DEVICES};
#endif

#define PORT(name) \
    { sizeof(catena_port_spec), 0, name, "", "T" }
static const catena_port_spec port_x = PORT("x"), port_y = PORT("y");
static const catena_port_spec *const inputs[] = {&port_x};
static const catena_port_spec *const outputs[] = {&port_y};

static inline catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                              const catena_meta *const *x, uint32_t n_x,
                                              catena_meta *const *y, uint32_t n_y) {
    (void)ctx, (void)attrs, (void)n_x, (void)n_y;
    y[0]->ndim = 0;
    y[0]->dtype = x[0]->dtype;
    return CATENA_OK;
}
static inline catena_status CATENA_CALL run(catena_ctx *ctx, const catena_call *call) {
    (void)ctx, (void)call;
    return CATENA_OK;
}

#define FUNCTION(name)                                                                        \
    {                                                                                         \
        sizeof(catena_function), 0, name, "", 1, 0, 1, 1, NULL, inputs, outputs, 0, 0, infer, \
            NULL, NULL, NULL                                                                  \
    }
#define KERNEL(function, run, n_saved, variant)                                                    \
    {                                                                                              \
        sizeof(catena_kernel), 0, CATENA_PHASE_FORWARD, 0, function, 1, 1, "nowhere", "", NULL, 0, \
            n_saved, variant, 0, 0, NULL, NULL, run, NULL                                          \
    }

#define ENTRY                                                                        \
    const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *host, \
                                                            catena_ctx *ctx)

/* Defines the entry of a plugin with functions and kernels. */
#define PLUGIN(functions, n_functions, kernels, n_kernels, init)   \
    ENTRY {                                                        \
        static const catena_plugin table = {sizeof(catena_plugin), \
                                            n_functions,           \
                                            n_kernels,             \
                                            0,                     \
                                            0,                     \
                                            0,                     \
                                            functions,             \
                                            kernels,               \
                                            NULL,                  \
                                            NULL,                  \
                                            init,                  \
                                            NULL};                 \
        (void)host, (void)ctx;                                     \
        return &table;                                             \
    }

/* Defines a module whose only function is "test.NAME". */
#define GOOD(name)                                                  \
    static const catena_function function = FUNCTION("test." name); \
    static const catena_function *const functions[] = {&function};  \
    PLUGIN(functions, 1, NULL, 0, NULL)

#endif
