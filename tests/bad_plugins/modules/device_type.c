/* A backend whose device type DLPack does not define. */
#define MODULE_ID "org.example.device_type"
#include "../module.h"

#include "../backend.h"

BACKEND_PLUGIN(backend.dlpack_type = 0x7fffffff)
