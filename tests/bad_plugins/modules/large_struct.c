/* A function whose struct_size is far larger than the struct. */
#define MODULE_ID "org.example.large_struct"
#include "../module.h"

static catena_function function = FUNCTION("test.large_struct");
static const catena_function *const functions[] = {&function};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    function.struct_size = 0xffffffff;
    return &table;
}
