/* A shared library without a manifest. */
#include "../module.h"

GOOD("no_manifest")
