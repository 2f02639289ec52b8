// expect: values/guard fuzz/attributes fuzz/shapes fuzz/ranks
// The kernel for float32 treats its tensors as float64.
#include "module.h"
SPOIL { forward32.run = forward_double; }
