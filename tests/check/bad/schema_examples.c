// expect: schema/examples values/examples
#include "module.h"
SPOIL { the_examples[1] = "z=(4)"; }
