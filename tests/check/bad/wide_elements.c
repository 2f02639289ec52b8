// expect: values/guard
// says: output y: written out of bounds: bytes 1 to
// The kernel for float32 takes its tensors for float64.
#include "module.h"
SPOIL { forward32.run = forward_double; }
