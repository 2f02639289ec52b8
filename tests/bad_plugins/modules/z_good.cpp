// A valid module, the last by file name, loaded after all refused ones.
#define MODULE_ID "org.example.z"
#include "../module.h"

GOOD("z")
