/* Built for another major of the ABI. */
#define MODULE_ID "org.example.wrong_major"
#define MODULE_MAJOR 2
#include "../module.h"

GOOD("wrong_major")
