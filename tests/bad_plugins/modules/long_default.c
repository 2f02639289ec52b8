/* A default of four billion integers. */
#define MODULE_ID "org.example.long_default"
#include "../module.h"

static const int64_t one = 1;
static catena_function function = FUNCTION("test.long_default");
static const catena_function *const functions[] = {&function};
static catena_attr_spec attribute = {
    .struct_size = sizeof(catena_attr_spec), .kind = CATENA_ATTR_INTS, .name = "a", .doc = ""};
static const catena_attr_spec *const attributes[] = {&attribute};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    function.attrs = attributes;
    function.n_attrs = 1;
    attribute.def = (catena_value){CATENA_ATTR_INTS, 0xffffffff, {.ints = &one}};
    return &table;
}
