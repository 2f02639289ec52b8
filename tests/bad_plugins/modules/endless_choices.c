/* A list of choices without a terminating NULL. */
#define MODULE_ID "org.example.endless_choices"
#define NAME "test.endless_choices"
#define KIND CATENA_ATTR_STRING
#include "../module.h"

#include "../attribute.h"

static void spoil(catena_attr_spec *spec) {
    static const char *choices[2000];
    for (int i = 0; i < 2000; ++i) choices[i] = "full";
    spec->choices = choices;
    spec->def = (catena_value){CATENA_ATTR_STRING, 1, {.s = "full"}};
}
