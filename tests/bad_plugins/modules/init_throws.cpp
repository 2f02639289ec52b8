// init() throws after everything is registered.
#define MODULE_ID "org.example.init_throws"
#include "../module.h"

#include <stdexcept>

static const catena_function function = FUNCTION("test.init_throws");
static const catena_function *const functions[] = {&function};

static catena_status init(const catena_host *, catena_ctx *) {
    throw std::runtime_error("at the last moment");
}
PLUGIN(functions, 1, NULL, 0, init)
