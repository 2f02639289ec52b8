/* catena.communicator/1: an extension for groups of processes or threads that exchange arrays. A
 * plugin registers one table for each library of communication, such as MPI or NCCL, and for no
 * device. Operations and names are those of MPI (MPI: A Message-Passing Interface Standard). */
#ifndef CATENA_ABI_EXT_COMMUNICATOR_H
#define CATENA_ABI_EXT_COMMUNICATOR_H

#include "catena/abi/host.h"

#define CATENA_COMMUNICATOR_1 "catena.communicator/1" /* its id */

typedef struct catena_comm catena_comm; /* plugin's: one rank's membership of a group */
typedef struct catena_work catena_work; /* plugin's: an operation that was started */

/* The kinds of operations. N is the number of ranks; counts are of elements. Where data has a piece
 * for each rank, the pieces lie one after the other in the order of ranks. Their sizes are the
 * counts of that name, or count each if there are none. */
enum {
    CATENA_OP_BARRIER = 0,        /* ends when all ranks have started it; no data */
    CATENA_OP_ALLREDUCE = 1,      /* recv[i] = the reduction over all ranks of send[i], i < count */
    CATENA_OP_REDUCE = 2,         /* the same, but only peer, the root, receives */
    CATENA_OP_BCAST = 3,          /* recv = peer's send, count elements; other send, and peer's
                                     recv, are ignored */
    CATENA_OP_ALLGATHER = 4,      /* piece r of recv = rank r's send of count elements; recv_counts,
                                     the same on all ranks */
    CATENA_OP_REDUCE_SCATTER = 5, /* recv = this rank's piece, of count elements, of the reduction
                                     of send, which has a piece for each rank; send_counts, the
                                     same on all ranks */
    CATENA_OP_GATHER = 6,         /* as ALLGATHER, but only peer, the root, has recv and counts */
    CATENA_OP_SCATTER = 7,        /* recv = this rank's piece, of count elements, of peer's send;
                                     only peer, the root, has send and send_counts */
    CATENA_OP_ALLTOALL = 8,       /* piece r of recv = rank r's piece of send for this rank;
                                     send_counts and recv_counts, either both or none */
    CATENA_OP_SEND = 9,           /* count elements to peer, with a tag; may wait for the RECV */
    CATENA_OP_RECV = 10           /* count elements from peer, with that tag */
};

/* SUM, MIN, MAX and PROD work on integers and floating dtypes; MEAN, the sum divided by N, on
 * floating ones. MIN and MAX of NaN and another number are either of them. Bool: MIN and MAX. */
enum {
    CATENA_REDUCE_SUM = 0,
    CATENA_REDUCE_MEAN = 1,
    CATENA_REDUCE_MIN = 2,
    CATENA_REDUCE_MAX = 3,
    CATENA_REDUCE_PROD = 4
};

/* How to join a group. */
typedef struct catena_comm_options {
    uint32_t struct_size;
    int32_t rank;        /* 0 .. size - 1; -1: given by the launcher's environment */
    int32_t size;        /* 0: given by the launcher's environment, else 1 */
    int32_t device_id;   /* the ordinal of the rank's device, if the group is one of devices */
    const char *address; /* names the group in the plugin's own format; NULL: the environment */
    double timeout;      /* seconds, of open() and of operations without their own; above 0 */
} catena_comm_options;

/* Where a rank is. */
typedef struct catena_comm_info {
    uint32_t struct_size;
    int32_t rank;
    int32_t size;
    int32_t local_rank; /* among the ranks of this machine */
    int32_t local_size;
    int32_t reserved;
} catena_comm_info;

/* One operation. All ranks of a group start the same operations in the same order, except SEND and
 * RECV. These match by peer and tag: of those with the same peer and tag, the n-th SEND matches the
 * n-th RECV; those with different tags may be started in any order. Memory is dense and aligned to
 * the element. It belongs to the caller, who keeps it until the work is done, or until close() if
 * the work failed. */
typedef struct catena_operation {
    uint32_t struct_size;
    int32_t kind;      /* CATENA_OP_* */
    int32_t reduction; /* CATENA_REDUCE_*, if the kind reduces */
    int32_t peer;      /* the root, or the other end of SEND and RECV, which is another rank */
    int32_t tag;       /* of SEND and RECV; >= 0 */
    catena_dtype dtype;
    const void *send; /* equal to recv, or its own piece of it: in place; else no overlap */
    void *recv;
    uint64_t count; /* may be 0; send and recv may be NULL where they have no elements */
    const uint64_t *send_counts; /* N of them, read by start(); NULL: count for each */
    const uint64_t *recv_counts;
    int32_t device_type; /* of the memory: DLPack's DLDeviceType ... */
    int32_t device_id;   /* ... and the ordinal */
    /* The operation begins after the work on the stream so far; NULL on a synchronous backend. */
    catena_stream *stream;
    double timeout;    /* seconds from start(); 0: that of the group; less is refused */
    const char *label; /* names the data in messages, "l1/W"; read by start(); may be NULL */
} catena_operation;

/* The table of the extension. Failures: CATENA_E_INVALID, _DTYPE or _UNSUPPORTED by start(), for an
 * operation that this rank can refuse alone; it is then not started. CATENA_E_DEVICE for what
 * happens between ranks, with the text "rank R: [operation] label: expected ..., got ...":
 *  - another rank ended, aborted, did not start the operation within the timeout, or started one of
 *    another kind, dtype, reduction, root or count. The text names that rank and what it did.
 *  - Every rank that waits for such an operation fails within its timeout. After that the group has
 *    failed: each later call fails at once with the same text.
 * Reductions give the same bits on all ranks, and in every run with the same number of ranks.
 * Floating halves may be rounded between additions.
 *
 * Thread rules: start(), split() and close() of one group are called by one thread at a time; the
 * others are [any]. Operations make progress without further calls. */
typedef struct catena_communicator {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name; /* "mpi" */
    const char *doc;  /* one line */
    /* Names of the backends whose memory it takes: "cpu", "cpu,cuda". An operation's device_type is
     * the dlpack_type of such a backend. */
    const char *devices;
    /* Joins a group; returns when all its ranks have. */
    catena_status(CATENA_CALL *open)(catena_ctx *ctx, const catena_comm_options *options,
                                     catena_comm **comm);
    /* After the last operation was released; the last call with comm. Does not wait for others.
     * Groups that split() made from it remain open. */
    void(CATENA_CALL *close)(catena_comm *comm);
    /* Fills the fields within out->struct_size, which the caller sets. */
    void(CATENA_CALL *info)(catena_comm *comm, catena_comm_info *out);
    /* Called by all ranks: those with the same color form a new group, ordered by key, then by
     * rank. color < 0: *out is NULL. The new group has the same timeout. */
    catena_status(CATENA_CALL *split)(catena_ctx *ctx, catena_comm *comm, int32_t color,
                                      int32_t key, catena_comm **out);
    /* Starts an operation and returns without waiting for others. *work is the caller's until
     * release(). */
    catena_status(CATENA_CALL *start)(catena_ctx *ctx, catena_comm *comm,
                                      const catena_operation *operation, catena_work **work);
    /* *done = 1 if the operation is done, else 0. Fails if it has failed. When it is done, recv has
     * the result, also on a device. test() and wait() may be called again after that. */
    catena_status(CATENA_CALL *test)(catena_ctx *ctx, catena_work *work, int32_t *done);
    /* Blocks the caller until the operation is done or has failed. */
    catena_status(CATENA_CALL *wait)(catena_ctx *ctx, catena_work *work);
    /* Makes the stream wait, not the caller. NULL if the table takes memory of synchronous backends
     * alone. Fails if the operation has already failed; later failures are those of wait(). */
    catena_status(CATENA_CALL *wait_on)(catena_ctx *ctx, catena_work *work, catena_stream *stream);
    /* Once for each work, done, failed or running; the operation runs on. */
    void(CATENA_CALL *release)(catena_work *work);
    /* Makes all ranks fail, now or at their next call, with the text "rank R: aborted: reason".
     * Returns at once; does nothing if the group has failed. */
    void(CATENA_CALL *abort)(catena_comm *comm, const char *reason);
} catena_communicator;

#endif
