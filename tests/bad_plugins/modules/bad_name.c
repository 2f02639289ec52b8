/* A function whose name breaks the rule for names. */
#define MODULE_ID "org.example.bad_name"
#include "../module.h"

GOOD("bad name!")
