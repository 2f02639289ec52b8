/* A kernel without run(). */
#define MODULE_ID "org.example.kernel_without_run"
#include "../module.h"

static const catena_function function = FUNCTION("test.kernel_without_run");
static const catena_function *const functions[] = {&function};
static const catena_kernel kernel = KERNEL("test.kernel_without_run", NULL, 0, NULL);
static const catena_kernel *const kernels[] = {&kernel};
PLUGIN(functions, 1, kernels, 1, NULL)
