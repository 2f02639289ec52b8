// expect: load/end load/host
#include "module.h"
static void CATENA_CALL deinit(void) { *(volatile int *)0 = 1; }
SPOIL { the_plugin.deinit = deinit; }
