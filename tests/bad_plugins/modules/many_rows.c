/* Claims more rows than one type variable has dtypes. */
#define MODULE_ID "org.example.many_rows"
#include "../module.h"

static const catena_function function = FUNCTION("test.many_rows");
static const catena_function *const functions[] = {&function};
static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1};
static catena_kernel kernel = KERNEL("test.many_rows", run, 0, NULL);
static const catena_kernel *const kernels[] = {&kernel};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 1, 0, 0, 0, functions, kernels, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    kernel.types = &float32;
    kernel.n_types = 17;
    return &table;
}
