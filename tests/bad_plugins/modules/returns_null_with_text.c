/* The entry fails with an error message. */
#define MODULE_ID "org.example.returns_null_with_text"
#include "../module.h"

ENTRY {
    (void)inputs, (void)outputs;
    host->fail(ctx, CATENA_E_DEVICE, "the moon is in the wrong phase");
    return NULL;
}
