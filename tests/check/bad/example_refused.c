// expect: values/examples
#include "module.h"
SPOIL { the_examples[1] = "x=(4) scale=1000"; }
