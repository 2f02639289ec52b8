// A default of 2^32 - 1 values.
// expect: schema/table
// says: its default: expected at most 100000 values, got 4294967295
#include "module.h"
static const double one = 1;
SPOIL {
    attr_scale.kind = attr_scale.def.kind = CATENA_ATTR_FLOATS;
    attr_scale.def.v.floats = &one;
    attr_scale.def.n = 0xffffffff;
}
