// expect: static/constructors
// link: -Wl,-fini=finish
// says: DT_FINI: expected the linker's, got finish
#include "module.h"
static int count;
CATENA_EXPORT void finish(void);
void finish(void) { ++count; }
SPOIL { the_plugin.reserved = 0; }
