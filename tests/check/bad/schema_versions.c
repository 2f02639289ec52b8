// expect: schema/versions
#include "module.h"
SPOIL { forward32.version_min = forward32.version_max = 2; }
