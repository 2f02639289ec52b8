/* A bool attribute whose default is neither 0 nor 1. */
#define MODULE_ID "org.example.bool_default"
#define NAME "test.bool_default"
#define KIND CATENA_ATTR_BOOL
#include "../module.h"

#include "../attribute.h"

static void spoil(catena_attr_spec *spec) {
    spec->def = (catena_value){CATENA_ATTR_BOOL, 1, {.i = 7}};
}
