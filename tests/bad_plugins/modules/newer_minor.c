/* Needs a newer minor of the ABI than the host has. */
#define MODULE_ID "org.example.newer_minor"
#define MODULE_MINOR (CATENA_ABI_MINOR + 1)
#include "../module.h"

GOOD("newer_minor")
