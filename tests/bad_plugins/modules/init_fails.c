/* init() fails: the function and the kernel must be removed again. */
#define MODULE_ID "org.example.init_fails"
#include "../module.h"

static const catena_function function = FUNCTION("test.init_fails");
static const catena_function *const functions[] = {&function};
static const catena_kernel kernel = KERNEL("test.a", run, 0, NULL);
static const catena_kernel *const kernels[] = {&kernel};

static catena_status CATENA_CALL init(const catena_host *host, catena_ctx *ctx) {
    const catena_callable *self = NULL;
    if (host->find(ctx, "test.init_fails", &self) != CATENA_OK)
        return CATENA_OK; /* not there yet? */
    return host->fail(ctx, CATENA_E_DEVICE, "no licence");
}
PLUGIN(functions, 1, kernels, 1, init)
