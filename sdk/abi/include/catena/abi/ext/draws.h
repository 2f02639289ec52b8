/* catena.draws/1: a host extension; random numbers for work that may be recorded. */
#ifndef CATENA_ABI_EXT_DRAWS_H
#define CATENA_ABI_EXT_DRAWS_H

#include "catena/abi/host.h"

#define CATENA_DRAWS_1 "catena.draws/1" /* its id */

/* The table of the extension. */
typedef struct catena_draws {
    uint32_t struct_size;
    uint32_t reserved;
    /* [compute] As catena_host.philox(), which fails while work is recorded: each launch would draw
     * the same. Then *where is memory of the call's device, valid for as long as the recording, in
     * which each launch finds its own seed and offset (two int64_t, as bits); else NULL, and they
     * are in *seed and *offset. */
    catena_status(CATENA_CALL *reserve)(catena_ctx *ctx, uint64_t n, uint64_t *seed,
                                        uint64_t *offset, const int64_t **where);
} catena_draws;

#endif
