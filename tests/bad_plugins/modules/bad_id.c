/* An id with an upper-case letter. */
#define MODULE_ID "org.example.Bad"
#include "../module.h"

GOOD("bad_id")
