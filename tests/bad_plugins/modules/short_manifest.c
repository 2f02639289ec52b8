/* A manifest whose struct_size is too small. */
#define MODULE_ID "org.example.short_manifest"
#define MODULE_MANIFEST_SIZE 20
#include "../module.h"

GOOD("short_manifest")
