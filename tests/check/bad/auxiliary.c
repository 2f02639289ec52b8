// expect: static/needed
// says: got libm.so.6 (DT_AUXILIARY)
// link: -Wl,--auxiliary,libm.so.6
#include "module.h"
SPOIL {}
