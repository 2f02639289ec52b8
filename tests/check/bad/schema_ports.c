// expect: schema/ports load/host
#include "module.h"
SPOIL { the_function.retain_y = 2; }
