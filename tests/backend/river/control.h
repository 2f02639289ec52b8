/* Functions by which tests control the device "river", in an extension of its backend. */
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
    /* Sets the longest delay before each item of work. The delay is random. */
    void (*delay)(void *dev, int32_t microseconds);
    /* Pauses the work of all streams until held is 0. */
    void (*hold)(void *dev, int32_t held);
    /* Makes the n-th item of work from now on fail; then all calls fail, until n is set to 0. */
    void (*fail)(void *dev, int32_t n);
    /* Sets the device's memory size. */
    void (*limit)(void *dev, int64_t bytes);
    /* Makes alloc() fail while the stream is being recorded. */
    void (*strict)(void *dev, int32_t strict);
    void (*counts)(void *dev, river_counts *counts);
    /* Sets the free memory that each kernel, graph launch and pinned allocation needs. Without
     * it, they fail before they do any work. 0: none. */
    void (*workspace)(void *dev, int64_t bytes);
} river_control;

#endif
