// expect: load/environment
#define _GNU_SOURCE
#include <stdlib.h>

#include "module.h"
SPOIL { setenv("OMP_NUM_THREADS", "1", 1); }
