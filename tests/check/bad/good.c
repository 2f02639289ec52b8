// expect: nothing
#include "module.h"
SPOIL {}
