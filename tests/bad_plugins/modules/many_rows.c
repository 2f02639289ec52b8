/* A kernel with more rows than one type variable has dtypes. */
#define MODULE_ID "org.example.many_rows"
#define NAME "test.many_rows"
#define N_TYPES 17
#include "../module.h"

#include "../rows.h"
