// expect: load/time
// options: --only load --only static
#include <time.h>

#include "module.h"
SPOIL {
    const clock_t start = clock();
    while (clock() - start < 11 * (CLOCKS_PER_SEC / 2)) {
    }
}
