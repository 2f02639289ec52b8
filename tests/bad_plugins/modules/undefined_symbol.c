/* Calls a function that no library defines. */
#define MODULE_ID "org.example.undefined_symbol"
#include "../module.h"

extern int function_of_a_missing_library(void);

static const catena_function function = FUNCTION("test.undefined_symbol");
static const catena_function *const functions[] = {&function};
ENTRY {
    static catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    table.n_functions = (uint32_t)function_of_a_missing_library();
    return &table;
}
