// expect: static/run-path
// link: -Wl,-rpath,/tmp/libraries
#include "module.h"
SPOIL {}
