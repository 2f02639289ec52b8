// expect: load/silent
#include <stdio.h>

#include "module.h"
SPOIL { puts("Welcome to square 1.0!"); }
