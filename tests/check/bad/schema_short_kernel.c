// The struct of a kernel is shorter than in ABI 1.0.
// expect: schema/table
// says: kernel 0: struct_size: expected at least 120, got 112
#include "module.h"
SPOIL { forward32.struct_size = 112; }
