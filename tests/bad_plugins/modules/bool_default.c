/* A bool that is neither 0 nor 1. */
#define MODULE_ID "org.example.bool_default"
#include "../module.h"

static catena_function function = FUNCTION("test.bool_default");
static const catena_function *const functions[] = {&function};
static catena_attr_spec attribute = {
    .struct_size = sizeof(catena_attr_spec), .kind = CATENA_ATTR_BOOL, .name = "a", .doc = ""};
static const catena_attr_spec *const attributes[] = {&attribute};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    function.attrs = attributes;
    function.n_attrs = 1;
    attribute.def = (catena_value){CATENA_ATTR_BOOL, 1, {.i = 7}};
    return &table;
}
