/* One of its functions is NULL: the good one is not registered either. */
#define MODULE_ID "org.example.null_function"
#include "../module.h"

static const catena_function function = FUNCTION("test.null_function");
static const catena_function *const functions[] = {&function, NULL};
PLUGIN(functions, 2, NULL, 0, NULL)
