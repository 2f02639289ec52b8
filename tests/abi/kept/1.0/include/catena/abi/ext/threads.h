/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_EXT_THREADS_H
#define CATENA_ABI_EXT_THREADS_H
#include "catena/abi/host.h"
#define CATENA_THREADS_1 "catena.threads/1"
typedef struct catena_threads {
    uint32_t struct_size;
    uint32_t reserved;
    int32_t(CATENA_CALL *count)(void *dev);
    void(CATENA_CALL *set_count)(void *dev, int32_t n);
    void(CATENA_CALL *parallel_for)(void *dev, int64_t n, int64_t grain, catena_range_fn fn,
                                    void *user);
} catena_threads;
#endif
