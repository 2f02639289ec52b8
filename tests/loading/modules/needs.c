/* Links a library that lies in a folder next to the plugin. */
#define MODULE_ID "org.example.needs"
#include "../../bad_plugins/module.h"

int brought(void);

static catena_status CATENA_CALL init(const catena_host *host, catena_ctx *ctx) {
    return brought() == 42 ? CATENA_OK : host->fail(ctx, CATENA_E_INTERNAL, "another library");
}
static const catena_function function = FUNCTION("test.needs");
static const catena_function *const functions[] = {&function};
PLUGIN(functions, 1, NULL, 0, init)
