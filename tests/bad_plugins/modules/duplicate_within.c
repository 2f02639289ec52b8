/* Declares the same function twice. */
#define MODULE_ID "org.example.duplicate_within"
#include "../module.h"

static const catena_function function = FUNCTION("test.duplicate_within");
static const catena_function *const functions[] = {&function, &function};
PLUGIN(functions, 2, NULL, 0, NULL)
