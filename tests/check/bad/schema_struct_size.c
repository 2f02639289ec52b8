// A size that no header has: a host would take what lies behind the struct for fields of it.
// expect: schema/table
// says: struct_size: expected at most 112, as in the ABI that its manifest names, got 4294967295
#include "module.h"
SPOIL { the_function.struct_size = 0xffffffff; }
