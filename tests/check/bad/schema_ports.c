// expect: schema/ports
#include "module.h"
SPOIL { the_function.retain_y = 2; }
