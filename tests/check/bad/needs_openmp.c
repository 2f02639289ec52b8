// expect: static/needed
// link: -Wl,--no-as-needed -l:libgomp.so.1
#include "module.h"
SPOIL {}
