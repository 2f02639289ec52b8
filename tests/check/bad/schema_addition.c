// It claims to be what gradients are summed with, and has one input.
// expect: schema/ports load/host
#include "module.h"
SPOIL { the_function.flags = CATENA_FUNCTION_ADDITION; }
