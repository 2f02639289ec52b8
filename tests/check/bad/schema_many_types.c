// Claims to have 2^31 - 1 rows of dtypes, but has one.
// expect: schema/table
// says: n_types: expected at most 16, got 2147483647
#include "module.h"
SPOIL { forward32.n_types = 0x7fffffff; }
