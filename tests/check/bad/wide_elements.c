// expect: values/guard fuzz/attributes fuzz/shapes fuzz/ranks
// The kernel for float32 takes its tensors for float64.
#include "module.h"
SPOIL { forward32.run = forward_double; }
