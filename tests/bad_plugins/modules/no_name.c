/* A function without a name. */
#define MODULE_ID "org.example.no_name"
#include "../module.h"

static const catena_function function = FUNCTION(NULL);
static const catena_function *const functions[] = {&function};
PLUGIN(functions, 1, NULL, 0, NULL)
