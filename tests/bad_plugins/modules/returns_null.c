/* The entry fails without an error message. */
#define MODULE_ID "org.example.returns_null"
#include "../module.h"

ENTRY {
    (void)host, (void)ctx, (void)inputs, (void)outputs;
    return NULL;
}
