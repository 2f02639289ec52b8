/* What tests ask of the device "river" and tell it: an extension of its backend. */
#ifndef RIVER_CONTROL_H
#define RIVER_CONTROL_H

#include <stdint.h>

#define RIVER_CONTROL "test.river/1"

typedef struct river_counts {
    int64_t allocations, live_bytes, pinned, event_records, event_waits, stream_syncs, device_syncs,
        fills, peer_copies, async_copies, streams, launches, frees_recording;
} river_counts;

typedef struct river_control {
    uint32_t struct_size;
    uint32_t reserved;
    /* Microseconds that each item of work takes at most; the true time is drawn. */
    void (*delay)(void *dev, int32_t microseconds);
    /* Work of all streams waits until it is let go again. */
    void (*hold)(void *dev, int32_t held);
    /* The n-th item of work from now on fails: every later call says so, until n is 0. */
    void (*fail)(void *dev, int32_t n);
    /* Bytes that can be had. */
    void (*limit)(void *dev, int64_t bytes);
    /* alloc() fails while a stream is recorded. */
    void (*strict)(void *dev, int32_t strict);
    void (*counts)(void *dev, river_counts *counts);
    /* Bytes that each kernel, each launch of a graph and each pinned block want beside the arrays:
     * without them it fails, before it does anything. */
    void (*workspace)(void *dev, int64_t bytes);
} river_control;

#endif
