/* A function whose version is too large. */
#define MODULE_ID "org.example.large_version"
#include "../module.h"

static catena_function function = FUNCTION("test.large_version");
static const catena_function *const functions[] = {&function};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    function.version = 0xffffffff;
    return &table;
}
