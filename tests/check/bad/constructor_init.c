// DT_INIT names one function; lists of constructors are newer.
// expect: static/constructors
// link: -Wl,-init=begin
// says: begin
#include "module.h"
static int count;
CATENA_EXPORT void begin(void);
void begin(void) { ++count; }
SPOIL { the_plugin.reserved = 0; }
