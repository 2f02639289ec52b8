// expect: static/constructors
#include "module.h"
static int count;
__attribute__((constructor)) static void work(void) { ++count; }
SPOIL { the_plugin.reserved = 0; }
