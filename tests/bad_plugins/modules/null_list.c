/* Claims three functions, but its list is NULL. */
#define MODULE_ID "org.example.null_list"
#include "../module.h"

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 3, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx, (void)inputs, (void)outputs;
    return &table;
}
