/* A function whose struct is too short. */
#define MODULE_ID "org.example.short_function"
#include "../module.h"

static const catena_function function = {
    16, 0, "test.short", "", 1, 0, 1, 1, NULL, inputs, outputs, 0, 0, infer, NULL, NULL, NULL};
static const catena_function *const functions[] = {&function};
PLUGIN(functions, 1, NULL, 0, NULL)
