/* A manifest without an id. */
#define MODULE_ID ""
#include "../module.h"

GOOD("no_id")
