/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_EXT_DRAWS_H
#define CATENA_ABI_EXT_DRAWS_H
#include "catena/abi/host.h"
#define CATENA_DRAWS_1 "catena.draws/1"
typedef struct catena_draws {
    uint32_t struct_size;
    uint32_t reserved;
    catena_status(CATENA_CALL *reserve)(catena_ctx *ctx, uint64_t n, uint64_t *seed,
                                        uint64_t *offset, const int64_t **where);
} catena_draws;
#endif
