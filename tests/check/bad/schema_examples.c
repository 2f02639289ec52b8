// expect: schema/examples values/examples load/host
#include "module.h"
SPOIL { the_examples[1] = "z=(4)"; }
