/* A list of functions with a NULL: the valid function is not registered either. */
#define MODULE_ID "org.example.null_function"
#include "../module.h"

static const catena_function function = FUNCTION("test.null_function");
static const catena_function *const functions[] = {&function, NULL};
PLUGIN(functions, 2, NULL, 0, NULL)
