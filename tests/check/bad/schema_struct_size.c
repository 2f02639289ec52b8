// The struct_size is larger than in any header: a host would read past the end of the struct.
// expect: schema/table
// says: struct_size: expected at most 112, as in the ABI that its manifest names, got 4294967295
#include "module.h"
SPOIL { the_function.struct_size = 0xffffffff; }
