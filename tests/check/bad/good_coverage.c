// expect: nothing
// needs: --coverage
// compile: --coverage
// What a measurement of the tests brings: a constructor, exit(), fork().
#include "module.h"
SPOIL {}
