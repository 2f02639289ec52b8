// expect: schema/table
#include "module.h"
SPOIL { forward32.isa = NULL; }
