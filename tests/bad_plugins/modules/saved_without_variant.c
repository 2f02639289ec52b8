/* A kernel that saves tensors but names no variant, so no backward kernel can read them. */
#define MODULE_ID "org.example.saved_without_variant"
#include "../module.h"

static const catena_function function = FUNCTION("test.saved_without_variant");
static const catena_function *const functions[] = {&function};
static const catena_kernel kernel = KERNEL("test.saved_without_variant", run, 2, NULL);
static const catena_kernel *const kernels[] = {&kernel};
PLUGIN(functions, 1, kernels, 1, NULL)
