/* A kernel that claims to save 2^32 - 1 tensors. */
#define MODULE_ID "org.example.many_saved"
#include "../module.h"

static const catena_function function = FUNCTION("test.many_saved");
static const catena_function *const functions[] = {&function};
static const catena_kernel kernel = KERNEL("test.many_saved", run, 0xffffffff, "v");
static const catena_kernel *const kernels[] = {&kernel};
PLUGIN(functions, 1, kernels, 1, NULL)
