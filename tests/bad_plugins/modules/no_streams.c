/* An asynchronous backend without streams. */
#define MODULE_ID "org.example.no_streams"
#include "../module.h"

#include "../backend.h"

BACKEND_PLUGIN(backend.flags = CATENA_BACKEND_ASYNC)
