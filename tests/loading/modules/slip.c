/* Kernels for functions that no plugin has. The first name is a misspelling of good.c's. */
#define MODULE_ID "org.example.slip"
#include "../../bad_plugins/module.h"

static const catena_kernel kernel_a = KERNEL("test.goood", run, 0, NULL);
static const catena_kernel kernel_b = KERNEL("org.nobody.one", run, 0, NULL);
static const catena_kernel kernel_c = KERNEL("org.nobody.two", run, 0, NULL);
static const catena_kernel kernel_d = KERNEL("org.nobody.three", run, 0, NULL);
static const catena_kernel kernel_e = KERNEL("org.nobody.four", run, 0, NULL);
static const catena_kernel *const kernels[] = {&kernel_a, &kernel_b, &kernel_c, &kernel_d,
                                               &kernel_e};
static const catena_function unused = FUNCTION("test.unused");
ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 0, 5, 0, 0, 0, NULL, kernels, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx, (void)unused;
    return &table;
}
