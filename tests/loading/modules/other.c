/* Has the id of good.c but other code: must not be loaded in its place. */
#define MODULE_ID "org.example.good"
#include "../../bad_plugins/module.h"

static const catena_function function = FUNCTION("test.other"), more = FUNCTION("test.more");
static const catena_function *const functions[] = {&function, &more};
PLUGIN(functions, 2, NULL, 0, NULL)
