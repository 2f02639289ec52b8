/* catena.threads/1: a backend extension with the threads behind catena_host.parallel_for(). */
#ifndef CATENA_ABI_EXT_THREADS_H
#define CATENA_ABI_EXT_THREADS_H

#include "catena/abi/host.h"

#define CATENA_THREADS_1 "catena.threads/1" /* its id */

/* The table of the extension. */
typedef struct catena_threads {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] The number of threads of a parallel_for, including the caller; at least 1. */
    int32_t(CATENA_CALL *count)(void *dev);
    /* [any] Devices of one backend may share their threads and this number. Do not call it while
     * a kernel runs that has asked for slots(). n < 1 means the default: the number of
     * processors that this process may use. */
    void(CATENA_CALL *set_count)(void *dev, int32_t n);
    /* [compute] The same as catena_host.parallel_for(). */
    void(CATENA_CALL *parallel_for)(void *dev, int64_t n, int64_t grain, catena_range_fn fn,
                                    void *user);
} catena_threads;

#endif
