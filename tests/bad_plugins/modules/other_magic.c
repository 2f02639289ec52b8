/* The manifest's section has the wrong magic. */
#define MODULE_ID "org.example.other_magic"
#define MODULE_MAGIC \
    { 'S', 'O', 'M', 'E', 'B', 'O', 'D', 'Y' }
#include "../module.h"

GOOD("other_magic")
