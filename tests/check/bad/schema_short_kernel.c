// A kernel that ends before what ABI 1.0 has.
// expect: schema/table
// says: kernel 0: struct_size: expected at least 120, got 112
#include "module.h"
SPOIL { forward32.struct_size = 112; }
