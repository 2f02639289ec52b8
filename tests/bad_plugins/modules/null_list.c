/* Counts functions that it does not have. */
#define MODULE_ID "org.example.null_list"
#include "../module.h"

static inline void unused(void) { (void)inputs, (void)outputs; }
PLUGIN(NULL, 3, NULL, 0, NULL)
