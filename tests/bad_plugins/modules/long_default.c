/* A default of four billion integers. */
#define MODULE_ID "org.example.long_default"
#define NAME "test.long_default"
#define KIND CATENA_ATTR_INTS
#include "../module.h"

#include "../attribute.h"

static void spoil(catena_attr_spec *spec) {
    static const int64_t one = 1;
    spec->def = (catena_value){CATENA_ATTR_INTS, 0xffffffff, {.ints = &one}};
}
