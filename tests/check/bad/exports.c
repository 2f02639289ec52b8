// expect: static/exports
// exports: all
#include "module.h"
CATENA_EXPORT int helper(void);
int helper(void) { return 1; }
SPOIL {}
