/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_ATTRIBUTE_H
#define CATENA_ABI_ATTRIBUTE_H
#include "catena/abi/tensor.h"
enum {
    CATENA_ATTR_INT = 1,
    CATENA_ATTR_FLOAT = 2,
    CATENA_ATTR_BOOL = 3,
    CATENA_ATTR_STRING = 4,
    CATENA_ATTR_INTS = 5,
    CATENA_ATTR_FLOATS = 6,
    CATENA_ATTR_DTYPE = 7
};
typedef struct catena_value {
    int32_t kind;
    uint32_t n;
    union {
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;
        const double *floats;
        catena_dtype dtype;
        uint64_t raw;
    } v;
} catena_value;
typedef struct catena_named_value {
    const char *name;
    catena_value value;
} catena_named_value;
enum {
    CATENA_ATTR_REQUIRED = 1u,
    CATENA_ATTR_RANGED = 2u,
    CATENA_ATTR_HINT = 4u
};
typedef struct catena_attr_spec {
    uint32_t struct_size;
    int32_t kind;
    const char *name;
    const char *doc;
    uint32_t flags;
    uint32_t reserved;
    catena_value def;
    catena_value lo;
    catena_value hi;
    const char *const *choices;
} catena_attr_spec;
#endif
