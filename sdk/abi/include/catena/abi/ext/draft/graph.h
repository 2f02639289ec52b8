/* catena.graph.draft/1: a backend extension; work of a stream recorded once and launched many
 * times. */
#ifndef CATENA_ABI_EXT_DRAFT_GRAPH_H
#define CATENA_ABI_EXT_DRAFT_GRAPH_H

#include "catena/abi/backend.h"

#define CATENA_GRAPH_DRAFT_1 "catena.graph.draft/1" /* its id */

typedef struct catena_graph_exec catena_graph_exec; /* backend's: recorded work, ready to launch */

/* The table of the extension; all are [compute]. Between begin() and end() work given to stream is
 * not done but recorded, with its addresses: the memory that it uses must stay as it is for as long
 * as the graph is launched. Whatever would wait for the stream, or ask the system for memory,
 * fails. */
typedef struct catena_graph {
    uint32_t struct_size;
    uint32_t reserved;
    catena_status(CATENA_CALL *begin)(catena_ctx *ctx, void *dev, catena_stream *stream);
    /* Ends the recording, also where something in it failed; then *graph is NULL. */
    catena_status(CATENA_CALL *end)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                    catena_graph_exec **graph);
    /* Puts all of the work on stream. One launch of a graph at a time. */
    catena_status(CATENA_CALL *launch)(catena_ctx *ctx, void *dev, catena_graph_exec *graph,
                                       catena_stream *stream);
    void(CATENA_CALL *destroy)(void *dev, catena_graph_exec *graph);
    /* [any] Work items in it: kernels, copies, fills. */
    uint64_t(CATENA_CALL *size)(const catena_graph_exec *graph);
} catena_graph;

#endif
