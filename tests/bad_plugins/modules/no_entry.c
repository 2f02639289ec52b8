/* A manifest without an entry. */
#define MODULE_ID "org.example.no_entry"
#include "../module.h"

extern CATENA_EXPORT const catena_function unused;
const catena_function unused = FUNCTION("test.no_entry");
