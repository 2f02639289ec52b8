/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_EXT_COMMUNICATOR_H
#define CATENA_ABI_EXT_COMMUNICATOR_H
#include "catena/abi/host.h"
#define CATENA_COMMUNICATOR_1 "catena.communicator/1"
typedef struct catena_comm catena_comm;
typedef struct catena_work catena_work;
enum {
    CATENA_OP_BARRIER = 0,
    CATENA_OP_ALLREDUCE = 1,
    CATENA_OP_REDUCE = 2,
    CATENA_OP_BCAST = 3,
    CATENA_OP_ALLGATHER = 4,
    CATENA_OP_REDUCE_SCATTER = 5,
    CATENA_OP_GATHER = 6,
    CATENA_OP_SCATTER = 7,
    CATENA_OP_ALLTOALL = 8,
    CATENA_OP_SEND = 9,
    CATENA_OP_RECV = 10
};
enum {
    CATENA_REDUCE_SUM = 0,
    CATENA_REDUCE_MEAN = 1,
    CATENA_REDUCE_MIN = 2,
    CATENA_REDUCE_MAX = 3,
    CATENA_REDUCE_PROD = 4
};
typedef struct catena_comm_options {
    uint32_t struct_size;
    int32_t rank;
    int32_t size;
    int32_t device_id;
    const char *address;
    double timeout;
} catena_comm_options;
typedef struct catena_comm_info {
    uint32_t struct_size;
    int32_t rank;
    int32_t size;
    int32_t local_rank;
    int32_t local_size;
    int32_t reserved;
} catena_comm_info;
typedef struct catena_operation {
    uint32_t struct_size;
    int32_t kind;
    int32_t reduction;
    int32_t peer;
    int32_t tag;
    catena_dtype dtype;
    const void *send;
    void *recv;
    uint64_t count;
    const uint64_t *send_counts;
    const uint64_t *recv_counts;
    int32_t device_type;
    int32_t device_id;
    catena_stream *stream;
    double timeout;
    const char *label;
} catena_operation;
typedef struct catena_communicator {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;
    const char *doc;
    const char *devices;
    catena_status(CATENA_CALL *open)(catena_ctx *ctx, const catena_comm_options *options,
                                     catena_comm **comm);
    void(CATENA_CALL *close)(catena_comm *comm);
    void(CATENA_CALL *info)(catena_comm *comm, catena_comm_info *out);
    catena_status(CATENA_CALL *split)(catena_ctx *ctx, catena_comm *comm, int32_t color,
                                      int32_t key, catena_comm **out);
    catena_status(CATENA_CALL *start)(catena_ctx *ctx, catena_comm *comm,
                                      const catena_operation *operation, catena_work **work);
    catena_status(CATENA_CALL *test)(catena_ctx *ctx, catena_work *work, int32_t *done);
    catena_status(CATENA_CALL *wait)(catena_ctx *ctx, catena_work *work);
    catena_status(CATENA_CALL *wait_on)(catena_ctx *ctx, catena_work *work, catena_stream *stream);
    void(CATENA_CALL *release)(catena_work *work);
    void(CATENA_CALL *abort)(catena_comm *comm, const char *reason);
} catena_communicator;
#endif
