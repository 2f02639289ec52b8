// Declares that it draws random numbers, but draws none.
// expect: determinism/random
#include "module.h"
SPOIL { the_function.flags = CATENA_FUNCTION_STOCHASTIC; }
