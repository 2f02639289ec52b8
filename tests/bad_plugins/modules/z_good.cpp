// A good module: last by name, after all that are refused.
#define MODULE_ID "org.example.z"
#include "../module.h"

GOOD("z")
