/* Has the id of another module. */
#define MODULE_ID "org.example.a"
#include "../module.h"

GOOD("same_id")
