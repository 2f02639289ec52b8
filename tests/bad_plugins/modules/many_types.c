/* Claims more rows of dtypes than there can be. */
#define MODULE_ID "org.example.many_types"
#define NAME "test.many_types"
#define N_TYPES 0x7fffffff
#include "../module.h"

#include "../rows.h"
