// DT_INIT names a single function; DT_INIT_ARRAY, a list of functions, is newer.
// expect: static/constructors
// link: -Wl,-init=begin
// says: begin
#include "module.h"
static int count;
CATENA_EXPORT void begin(void);
void begin(void) { ++count; }
SPOIL { the_plugin.reserved = 0; }
