/* A list of choices without an end. */
#define MODULE_ID "org.example.endless_choices"
#include "../module.h"

static catena_function function = FUNCTION("test.endless_choices");
static const catena_function *const functions[] = {&function};
static catena_attr_spec attribute = {
    .struct_size = sizeof(catena_attr_spec), .kind = CATENA_ATTR_STRING, .name = "a", .doc = ""};
static const catena_attr_spec *const attributes[] = {&attribute};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    function.attrs = attributes;
    function.n_attrs = 1;
    static const char *choices[2000];
    for (int i = 0; i < 2000; ++i) choices[i] = "full";
    attribute.choices = choices;
    attribute.def = (catena_value){CATENA_ATTR_STRING, 1, {.s = "full"}};
    return &table;
}
