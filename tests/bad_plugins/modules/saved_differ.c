/* The backward kernel expects two saved tensors, the forward kernel saves none. */
#define MODULE_ID "org.example.saved_differ"
#include "../module.h"

static const catena_function function = FUNCTION("test.saved_differ");
static const catena_function *const functions[] = {&function};
static catena_kernel forward = KERNEL("test.saved_differ", run, 0, "v");
static catena_kernel backward = KERNEL("test.saved_differ", run, 2, "v");
static const catena_kernel *const kernels[] = {&forward, &backward};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 2, 0, 0, 0, functions, kernels, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    backward.phase = CATENA_PHASE_BACKWARD;
    return &table;
}
