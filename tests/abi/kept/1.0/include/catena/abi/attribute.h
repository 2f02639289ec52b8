/* Attributes: typed values and the schema that the host checks them against. */
#ifndef CATENA_ABI_ATTRIBUTE_H
#define CATENA_ABI_ATTRIBUTE_H

#include "catena/abi/tensor.h"

enum {
    CATENA_ATTR_INT = 1,
    CATENA_ATTR_FLOAT = 2,
    CATENA_ATTR_BOOL = 3, /* in v.i: 0 or 1 */
    CATENA_ATTR_STRING = 4,
    CATENA_ATTR_INTS = 5, /* n values at v.ints */
    CATENA_ATTR_FLOATS = 6,
    CATENA_ATTR_DTYPE = 7
};

/* One value; frozen at 16 bytes. Lists and strings belong to the caller and are valid during the
 * call. */
typedef struct catena_value {
    int32_t kind; /* CATENA_ATTR_INT ... CATENA_ATTR_DTYPE */
    uint32_t n;   /* length of a list, otherwise 1 */
    union {
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;
        const double *floats;
        catena_dtype dtype;
        uint64_t raw;
    } v; /* the member for this kind */
} catena_value;

/* A named value, for calls from a plugin to another function; frozen at 24 bytes. */
typedef struct catena_named_value {
    const char *name;
    catena_value value;
} catena_named_value;

enum {
    CATENA_ATTR_REQUIRED = 1u, /* no default: the caller must give it */
    CATENA_ATTR_RANGED = 2u,   /* lo <= value <= hi for each number */
    CATENA_ATTR_HINT = 4u      /* may change speed, never results */
};

/* The schema of an attribute. infer(), plan() and run() receive one value for each attribute, in
 * the order of the schema, with defaults filled in, and with kind, range and choice checked. */
typedef struct catena_attr_spec {
    uint32_t struct_size;
    int32_t kind; /* CATENA_ATTR_INT ... CATENA_ATTR_DTYPE */
    const char *name;
    const char *doc;
    uint32_t flags; /* CATENA_ATTR_REQUIRED ... */
    uint32_t reserved;
    catena_value def;           /* the default */
    catena_value lo;            /* for RANGED, inclusive */
    catena_value hi;            /* for RANGED, inclusive */
    const char *const *choices; /* strings: NULL-terminated list of the allowed, or NULL */
} catena_attr_spec;

#endif
