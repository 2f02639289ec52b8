// expect: nothing
// needs: --coverage
// compile: --coverage
// Instrumentation for coverage adds a constructor and calls of exit() and fork().
#include "module.h"
SPOIL {}
