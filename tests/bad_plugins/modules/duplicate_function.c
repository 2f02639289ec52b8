/* Declares a function that another module has registered. */
#define MODULE_ID "org.example.duplicate_function"
#include "../module.h"

static const catena_function fresh = FUNCTION("test.duplicate_function"), old = FUNCTION("test.a");
static const catena_function *const functions[] = {&fresh, &old};
PLUGIN(functions, 2, NULL, 0, NULL)
