// expect: nothing
// exports: all
// compile: -fvisibility=hidden
// link: -Wl,--default-symver
// The linker adds a symbol named like the version; it is no function or variable and thus allowed.
#include "module.h"
SPOIL {}
