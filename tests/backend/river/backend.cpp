// The backend "river": three devices, streams, events, and all draft extensions that the core uses.
#include "device.hpp"
#include "river.hpp"

#include <catena/abi/ext/draft/events.h>
#include <catena/abi/ext/draft/memory.h>

#include <cstdlib>
#include <cstring>

namespace river {
namespace {

constexpr std::int32_t n_devices = 3;

Device& device_of(void* dev) { return *static_cast<Device*>(dev); }
Stream& of(catena_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
Event& of(catena_event* event) { return *reinterpret_cast<Event*>(event); }

catena_status fail(catena_ctx* ctx, catena_status status, const char* text) {
    return host->fail(ctx, status, text);
}
catena_status lost(catena_ctx* ctx) {
    return fail(ctx, CATENA_E_DEVICE, "[river] an access out of bounds, in work that was queued");
}
// Makes calls fail after queued work has failed.
#define CHECK_DEVICE(ctx, dev) \
    if (device_of(dev).lost) return lost(ctx)
#define NEED_WORKSPACE(ctx, dev)                                        \
    if (const Device& d = device_of(dev);                               \
        d.workspace > 0 && d.counts.live_bytes + d.workspace > d.limit) \
    return fail(ctx, CATENA_E_NOMEM, "[river] no memory for a workspace")
#define REFUSE_RECORDING(ctx, stream) \
    if (of(stream).recording())       \
    return fail(ctx, CATENA_E_DEVICE, "[river] not while it is recorded")

catena_status count(catena_ctx*, std::int32_t* n) {
    *n = n_devices;
    return CATENA_OK;
}
catena_status open(catena_ctx*, std::int32_t ordinal, void** dev) {
    static auto* const devices = new Device[n_devices];  // never freed
    *dev = &devices[ordinal];
    return CATENA_OK;
}

catena_status alloc(catena_ctx* ctx, void* dev, catena_stream* stream, std::uint64_t bytes,
                    void** data) {
    CHECK_DEVICE(ctx, dev);
    Device& device = device_of(dev);
    ++device.counts.allocations;
    if (device.strict) REFUSE_RECORDING(ctx, stream);
    if (device.counts.live_bytes + static_cast<std::int64_t>(bytes) > device.limit)
        return fail(ctx, CATENA_E_NOMEM, "[river] out of memory");
    *data = device.memory.allocate(bytes);
    if (!*data) return fail(ctx, CATENA_E_NOMEM, "[river] out of address space");
    device.counts.live_bytes += static_cast<std::int64_t>(bytes);
    std::memset(device.memory.near(*data), 0xff, bytes);  // NaN: shows reads of uninitialized data
    return CATENA_OK;
}
void release(void* dev, catena_stream* stream, void* data, std::uint64_t bytes) {
    Device& device = device_of(dev);
    {
        const std::lock_guard lock(device.mutex);
        for (Stream* other : device.streams) device.counts.frees_recording += other->recording();
    }
    of(stream).give([&device, data, bytes] {  // runs after the stream's earlier work
        device.memory.release(data, bytes);
        device.counts.live_bytes -= static_cast<std::int64_t>(bytes);
    });
}

catena_status copy(catena_ctx* ctx, void* dev, catena_stream* stream, void* to, const void* from,
                   std::uint64_t bytes, std::int32_t direction) {
    CHECK_DEVICE(ctx, dev);
    const Memory& memory = device_of(dev).memory;
    if (direction == CATENA_COPY_HOST_TO_DEVICE) {
        REFUSE_RECORDING(ctx, stream);
        const auto* bytes_of = static_cast<const char*>(from);
        of(stream).give([&memory, to, staging = std::vector<char>(bytes_of, bytes_of + bytes)] {
            std::memcpy(memory.near(to), staging.data(), staging.size());
        });
    } else if (direction == CATENA_COPY_DEVICE_TO_HOST) {
        REFUSE_RECORDING(ctx, stream);
        of(stream).give([&memory, to, from, bytes] { std::memcpy(to, memory.near(from), bytes); });
    } else {
        of(stream).give(
            [&memory, to, from, bytes] { std::memcpy(memory.near(to), memory.near(from), bytes); });
    }
    return CATENA_OK;
}
catena_status sizes(catena_ctx*, void* dev, std::uint64_t* available, std::uint64_t* total) {
    const Device& device = device_of(dev);
    *total = static_cast<std::uint64_t>(device.limit);
    *available = *total - static_cast<std::uint64_t>(device.counts.live_bytes);
    return CATENA_OK;
}

catena_status stream_create(catena_ctx* ctx, void* dev, catena_stream** stream) {
    CHECK_DEVICE(ctx, dev);
    Device& device = device_of(dev);
    ++device.counts.streams;
    auto* made = new Stream(device);
    const std::lock_guard lock(device.mutex);
    device.streams.push_back(made);
    *stream = reinterpret_cast<catena_stream*>(made);
    return CATENA_OK;
}
void stream_destroy(void* dev, catena_stream* stream) {
    Device& device = device_of(dev);
    {
        const std::lock_guard lock(device.mutex);
        std::erase(device.streams, &of(stream));
    }
    delete &of(stream);
}
catena_status stream_sync(catena_ctx* ctx, void* dev, catena_stream* stream) {
    ++device_of(dev).counts.stream_syncs;
    REFUSE_RECORDING(ctx, stream);
    of(stream).mark()->wait();
    CHECK_DEVICE(ctx, dev);
    return CATENA_OK;
}
catena_status sync(catena_ctx* ctx, void* dev) {
    Device& device = device_of(dev);
    ++device.counts.device_syncs;
    std::vector<Stream*> streams;
    {
        const std::lock_guard lock(device.mutex);
        streams = device.streams;
    }
    for (Stream* stream : streams) {
        if (stream->recording()) return fail(ctx, CATENA_E_DEVICE, "[river] a stream is recorded");
        stream->mark()->wait();
    }
    CHECK_DEVICE(ctx, dev);
    return CATENA_OK;
}

catena_status event_create(catena_ctx* ctx, void* dev, catena_event** event) {
    CHECK_DEVICE(ctx, dev);
    *event = reinterpret_cast<catena_event*>(new Event);
    return CATENA_OK;
}
void event_destroy(void*, catena_event* event) { delete &of(event); }
catena_status event_record(catena_ctx* ctx, void* dev, catena_event* event, catena_stream* stream) {
    CHECK_DEVICE(ctx, dev);
    REFUSE_RECORDING(ctx, stream);
    ++device_of(dev).counts.event_records;
    of(event).set(of(stream).mark());
    return CATENA_OK;
}
catena_status event_wait(catena_ctx* ctx, void* dev, catena_event* event, catena_stream* stream) {
    CHECK_DEVICE(ctx, dev);
    REFUSE_RECORDING(ctx, stream);
    ++device_of(dev).counts.event_waits;
    if (const auto record = of(event).get()) of(stream).give([record] { record->wait(); });
    return CATENA_OK;
}

// ---- events

const catena_events events = {
    .struct_size = sizeof(catena_events),
    .reserved = 0,
    .stream_query = [](catena_ctx* ctx, void* dev, catena_stream* stream,
                       std::int32_t* done) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        *done = of(stream).idle();
        return CATENA_OK;
    },
    .event_query = [](catena_ctx* ctx, void* dev, catena_event* event,
                      std::int32_t* done) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        const auto record = of(event).get();
        *done = !record || record->reached();
        return CATENA_OK;
    },
    .event_sync = [](catena_ctx* ctx, void* dev, catena_event* event) -> catena_status {
        if (const auto record = of(event).get()) record->wait();
        CHECK_DEVICE(ctx, dev);
        return CATENA_OK;
    },
    .elapsed = [](catena_ctx* ctx, void* dev, catena_event* begin, catena_event* end,
                  double* milliseconds) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        const std::chrono::duration<double, std::milli> time =
            of(end).get()->time - of(begin).get()->time;
        *milliseconds = time.count();
        return CATENA_OK;
    },
    .timed_event_create = nullptr,  // every event has a time
};

// ---- memory

const catena_memory memory_table = {
    .struct_size = sizeof(catena_memory),
    .reserved = 0,
    .host_alloc = [](catena_ctx* ctx, void* dev, std::uint64_t bytes,
                     void** data) -> catena_status {
        NEED_WORKSPACE(ctx, dev);
        *data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
        std::memset(*data, 0xff, bytes);
        ++device_of(dev).counts.pinned;
        return CATENA_OK;
    },
    .host_free =
        [](void* dev, void* data, std::uint64_t) {
            --device_of(dev).counts.pinned;
            std::free(data);
        },
    .copy_async = [](catena_ctx* ctx, void* dev, catena_stream* stream, void* to, const void* from,
                     std::uint64_t bytes, std::int32_t direction) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        Device& device = device_of(dev);
        ++device.counts.async_copies;
        const Memory& memory = device.memory;
        of(stream).give([&memory, to, from, bytes, direction] {
            std::memcpy(direction == CATENA_COPY_DEVICE_TO_HOST ? to : memory.near(to),
                        direction == CATENA_COPY_HOST_TO_DEVICE ? from : memory.near(from), bytes);
        });
        return CATENA_OK;
    },
    .fill = [](catena_ctx* ctx, void* dev, catena_stream* stream, void* to, const void* value,
               std::uint32_t item, std::uint64_t n) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        Device& device = device_of(dev);
        ++device.counts.fills;
        const auto* bytes = static_cast<const char*>(value);
        of(stream).give(
            [&memory = device.memory, to, n, element = std::vector<char>(bytes, bytes + item)] {
                auto* at = static_cast<char*>(memory.near(to));
                for (std::uint64_t i = 0; i < n; ++i, at += element.size())
                    std::memcpy(at, element.data(), element.size());
            });
        return CATENA_OK;
    },
    .copy_peer = [](catena_ctx* ctx, void* dev, catena_stream* stream, void* to, void* from_dev,
                    const void* from, std::uint64_t bytes) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        Device& device = device_of(dev);
        ++device.counts.peer_copies;
        of(stream).give([&a = device.memory, &b = device_of(from_dev).memory, to, from, bytes] {
            std::memcpy(a.near(to), b.near(from), bytes);
        });
        return CATENA_OK;
    },
    .convert = nullptr,  // the host converts
};

// ---- graphs: lists of work

using Items = std::vector<Work>;

const catena_graph graphs = {
    .struct_size = sizeof(catena_graph),
    .reserved = 0,
    .begin = [](catena_ctx* ctx, void* dev, catena_stream* stream) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        of(stream).begin();
        return CATENA_OK;
    },
    .end = [](catena_ctx*, void*, catena_stream* stream,
              catena_graph_exec** graph) -> catena_status {
        *graph = reinterpret_cast<catena_graph_exec*>(of(stream).end().release());
        return CATENA_OK;
    },
    .launch = [](catena_ctx* ctx, void* dev, catena_graph_exec* graph,
                 catena_stream* stream) -> catena_status {
        CHECK_DEVICE(ctx, dev);
        NEED_WORKSPACE(ctx, dev);
        ++device_of(dev).counts.launches;
        for (const Work& work : *reinterpret_cast<const Items*>(graph)) of(stream).give(work);
        return CATENA_OK;
    },
    .destroy = [](void*, catena_graph_exec* graph) { delete reinterpret_cast<Items*>(graph); },
    .size = [](const catena_graph_exec* graph) -> std::uint64_t {
        return reinterpret_cast<const Items*>(graph)->size();
    },
};

// ---- what tests tell it

const river_control control = {
    .struct_size = sizeof(river_control),
    .reserved = 0,
    .delay = [](void* dev, std::int32_t microseconds) { device_of(dev).delay = microseconds; },
    .hold = [](void* dev, std::int32_t held) { device_of(dev).held = held != 0; },
    .fail =
        [](void* dev, std::int32_t n) {
            device_of(dev).fail_in = n;
            if (n == 0) device_of(dev).lost = false;
        },
    .limit = [](void* dev, std::int64_t bytes) { device_of(dev).limit = bytes; },
    .strict = [](void* dev, std::int32_t strict) { device_of(dev).strict = strict != 0; },
    .counts =
        [](void* dev, river_counts* out) {
            const Counts& c = device_of(dev).counts;
            *out = {c.allocations,    c.live_bytes,   c.pinned,       c.event_records,
                    c.event_waits,    c.stream_syncs, c.device_syncs, c.fills,
                    c.peer_copies,    c.async_copies, c.streams,      c.launches,
                    c.frees_recording};
        },
    .workspace = [](void* dev, std::int64_t bytes) { device_of(dev).workspace = bytes; },
};

const void* get_extension(void*, const char* id) {
    const std::pair<const char*, const void*> tables[] = {{CATENA_EVENTS_DRAFT_1, &events},
                                                          {CATENA_MEMORY_DRAFT_1, &memory_table},
                                                          {CATENA_GRAPH_DRAFT_1, &graphs},
                                                          {RIVER_CONTROL, &control}};
    for (const auto& [name, table] : tables) {
        if (std::strcmp(name, id) == 0) return table;
    }
    return nullptr;
}

}  // namespace

const catena_backend backend = {
    .struct_size = sizeof(catena_backend),
    .flags = CATENA_BACKEND_ASYNC,
    .name = "river",
    .doc = "Streams that are threads, and take their time.",
    .dlpack_type = 12,  // kDLExtDev
    .reserved = 0,
    .count = count,
    .open = open,
    .close = [](void*) {},
    .supports_isa = [](void*, const char*) -> std::int32_t { return 0; },
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .memory = sizes,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .sync = sync,
    .get_extension = get_extension,
};

catena_status give(catena_ctx* ctx, const catena_call* call, Work work) {
    CHECK_DEVICE(ctx, call->dev);
    NEED_WORKSPACE(ctx, call->dev);
    of(call->stream).give(std::move(work));
    return CATENA_OK;
}
void* near(const catena_call* call, const catena_tensor* tensor) {
    const auto* address = static_cast<const std::byte*>(tensor->dl.data) + tensor->dl.byte_offset;
    return device_of(call->dev).memory.near(address);
}
void* near(const catena_call* call, const void* address) {
    return device_of(call->dev).memory.near(address);
}

}  // namespace river
