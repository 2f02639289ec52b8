// expect: schema/docs
#include "module.h"
SPOIL { the_function.doc = ""; }
