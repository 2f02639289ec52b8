// Claims to be the function that adds gradients, but has only one input.
// expect: schema/ports load/host
#include "module.h"
SPOIL { the_function.flags = CATENA_FUNCTION_ADDITION; }
