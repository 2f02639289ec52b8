// expect: nothing
// exports: all
// compile: -fvisibility=hidden
// link: -Wl,--default-symver
// The linker adds a symbol with the name of the version: no function or variable, no fault.
#include "module.h"
SPOIL {}
