/* A valid module, the first by file name. */
#define MODULE_ID "org.example.a"
#include "../module.h"

static const catena_function function = FUNCTION("test.a");
static const catena_function *const functions[] = {&function};
static const catena_kernel kernel = KERNEL("test.a", run, 0, NULL);
static const catena_kernel *const kernels[] = {&kernel};
PLUGIN(functions, 1, kernels, 1, NULL)
