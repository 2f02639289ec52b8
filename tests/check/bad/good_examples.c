// Examples with blanks and quotes that the parser accepts.
// expect: nothing
#include "module.h"
static catena_attr_spec attr_mode = {.struct_size = sizeof(catena_attr_spec),
                                     .kind = CATENA_ATTR_STRING,
                                     .name = "mode",
                                     .doc = "of no consequence",
                                     .def = {CATENA_ATTR_STRING, 1, {.s = "a b"}}};
SPOIL {
    static const catena_attr_spec *attrs[] = {&attr_scale, &attr_mode};
    the_function.attrs = attrs;
    the_function.n_attrs = 2;
    the_examples[0] = " x=(2,3)  scale=2 ";
    the_examples[1] = "mode=\"a \\\" b\" x=(4)";
}
