/* A kernel that claims 2^31 - 1 rows of dtypes. */
#define MODULE_ID "org.example.many_types"
#define NAME "test.many_types"
#define N_TYPES 0x7fffffff
#include "../module.h"

#include "../rows.h"
