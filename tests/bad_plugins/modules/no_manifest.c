/* A shared library like any other. */
#include "../module.h"

GOOD("no_manifest")
