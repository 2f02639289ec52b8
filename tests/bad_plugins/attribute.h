/* A function NAME with an attribute of the kind KIND. A module defines both, and spoil(). */
#ifndef ATTRIBUTE_H
#define ATTRIBUTE_H

static void spoil(catena_attr_spec *attribute);

static catena_function function = FUNCTION(NAME);
static const catena_function *const functions[] = {&function};
static catena_attr_spec attribute = {
    .struct_size = sizeof(catena_attr_spec), .kind = KIND, .name = "a", .doc = ""};
static const catena_attr_spec *const attributes[] = {&attribute};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    function.attrs = attributes;
    function.n_attrs = 1;
    spoil(&attribute);
    return &table;
}

#endif
