/* Claims 2^32 - 1 kernels. */
#define MODULE_ID "org.example.many_kernels"
#include "../module.h"

static const catena_function function = FUNCTION("test.many_kernels");
static const catena_function *const functions[] = {&function};
static const catena_kernel kernel = KERNEL("test.many_kernels", run, 0, NULL);
static const catena_kernel *const kernels[] = {&kernel};
PLUGIN(functions, 1, kernels, 0xffffffff, NULL)
