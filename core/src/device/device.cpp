// DeviceState: an opened device. Queue: tickets, and the events behind them.
#include "device/device_state.hpp"

namespace catena {

DeviceState::DeviceState(BackendEntry& backend_entry, int device_ordinal, int device_index)
    : backend(backend_entry),
      table(*backend_entry.table),
      ordinal(device_ordinal),
      index(device_index),
      name(fmt::format("{}:{}", table.name, ordinal)) {
    {
        catena_ctx ctx;
        const PluginStep step(backend.plugin->file, "open()");
        const catena_status status = table.open(&ctx, ordinal, &dev);
        if (status != CATENA_OK) throw_failure(ctx, status, name, "the device could not be opened");
    }
    // least: size of the table in the first release that had it.
    const auto ask = [&]<class Table>(const Table*& given, const char* id,
                                      std::size_t least = sizeof(Table)) {
        given = static_cast<const Table*>(extension(id));
        if (!given || given->struct_size >= least) return;
        raise<DeviceError>("[{}] {}: struct_size: expected at least {}, got {}", name, id, least,
                           given->struct_size);
    };
    ask(threads, CATENA_THREADS_1,
        offsetof(catena_threads, parallel_for) + sizeof(catena_threads::parallel_for));
    ask(memory, CATENA_MEMORY_DRAFT_1);
    ask(events, CATENA_EVENTS_DRAFT_1);
    ask(graphs, CATENA_GRAPH_DRAFT_1);
    if (threads && !(threads->count && threads->set_count && threads->parallel_for)) {
        raise<DeviceError>(
            "[{}] {}: expected count, set_count and parallel_for, got NULL among them", name,
            CATENA_THREADS_1);
    }
    main_ = &make_queue();
}

const void* DeviceState::extension(const char* id) const {
    if (!table.get_extension) return nullptr;
    const PluginStep step(backend.plugin->file, "get_extension()");
    return table.get_extension(dev, id);
}

Queue& DeviceState::make_queue() {
    catena_stream* stream = nullptr;
    if (async()) {
        on_backend(
            *this, [&](catena_ctx* ctx) { return table.stream_create(ctx, dev, &stream); },
            "a stream could not be made");
    }
    return *queues_.emplace_back(std::make_unique<Queue>(*this, stream));
}

Queue& DeviceState::take_queue() {
    if (!async()) return *main_;
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return make_queue();
    Queue& queue = *idle_.back();
    idle_.pop_back();
    return queue;
}

void DeviceState::give_back_queue(Queue& queue) noexcept {
    const std::lock_guard lock(mutex_);
    idle_.push_back(&queue);
}

Queue& add_queue(std::unique_ptr<Queue> queue) {
    DeviceState& device = queue->device;
    const std::lock_guard lock(device.mutex_);
    return *device.queues_.emplace_back(std::move(queue));
}

std::vector<Queue*> queues_of(Device device) {
    const std::lock_guard lock(device.state()->mutex_);
    std::vector<Queue*> all;
    for (const auto& queue : device.state()->queues_) all.push_back(queue.get());
    return all;
}

void DeviceState::copy(Queue& queue, void* target, const void* source, std::uint64_t bytes,
                       int direction) {
    if (bytes == 0) return;
    if (queue.recording.load() && direction != CATENA_COPY_DEVICE_TO_DEVICE)
        queue.refuse("a copy of host memory that is not pinned");
    submit(queue, [&](catena_ctx* ctx) {
        return table.copy(ctx, dev, queue.native, target, source, bytes, direction);
    });
    if (direction == CATENA_COPY_DEVICE_TO_HOST) queue.finish();
}

void DeviceState::release_cached() noexcept {
    main_->own->release_cached();
    pinned.release();
}

bool make_room(catena_ctx& ctx, catena_status status) noexcept {
    DeviceState* device = ctx.device;
    if (status != CATENA_E_NOMEM || !device) return false;
    const std::shared_lock waiting(device->waits);
    if (device->heap.recordings.load() > 0) return false;
    device->release_cached();
    catena_ctx wait;  // frees are ordered on the streams: wait for them
    if (device->async()) device->table.sync(&wait, device->dev);
    forget_failure(ctx);
    return true;
}

// ---- streams: tickets, and the events behind them

Queue::Queue(DeviceState& of, catena_stream* stream, bool recorder)
    : device(of),
      native(stream),
      async(of.async()),
      own(std::make_unique<CachingAllocator>(*this, recorder)),
      pool(own.get()) {}
Queue::~Queue() = default;

void Recorder::hold_memory() {
    const std::lock_guard nobody_waits(device.waits);
    const std::lock_guard lock(device.heap.mutex);
    ++device.heap.recordings;
}
void Recorder::release_memory() noexcept {
    std::unique_lock lock(device.heap.mutex);
    const bool release = --device.heap.recordings == 0 && device.heap.release_wanted;
    lock.unlock();
    if (release) device.release_cached();
}
void Recorder::keep_free_memory(bool kept) noexcept { own->keep(kept); }

// Returns a handle that never gives the queue back: the device owns it.
Stream Queue::as_stream() noexcept {
    return Stream(std::shared_ptr<Queue>(std::shared_ptr<void>(), this));
}

void Queue::refuse(const char* what) const {
    raise<UnsupportedError>(
        "[recording] {}: expected work that stays on the recorded stream, got {}", device.name,
        what);
}

// Returns the earliest recorded event that covers the ticket, or null. Requires mutex_.
Queue::Point* Queue::find(std::uint64_t ticket) {
    Point* best = nullptr;
    for (Point& p : points_)
        if (p.ticket >= ticket && (!best || p.ticket < best->ticket)) best = &p;
    return best;
}

Queue::Point& Queue::point(std::uint64_t ticket) {
    if (Point* known = find(ticket)) return *known;
    Point& p = points_[next_point_++ % std::size(points_)];
    p.ticket = 0;  // invalid until the event is recorded
    const catena_backend& b = device.table;
    const std::uint64_t until = now();
    on_backend(device, [&](catena_ctx* ctx) {
        const catena_status made = p.event ? CATENA_OK : b.event_create(ctx, device.dev, &p.event);
        return made ? made : b.event_record(ctx, device.dev, p.event, native);
    });
    p.ticket = until;
    return p;
}

void Queue::after(Queue& other, std::uint64_t ticket) {
    if (&other == this || !other.async) return;
    if (other.native == native && &other.device == &device) return;  // a recorder shares its stream
    ticket = std::min(ticket, other.now());
    if (ticket <= other.done_.load(std::memory_order_acquire)) return;
    if (!async || &other.device.table != &device.table) return other.finish(ticket);
    const std::scoped_lock lock(mutex_, other.mutex_);
    std::uint64_t& seen = seen_[&other];
    if (seen >= ticket) return;
    if (recording.load() || other.recording.load()) refuse("a wait for another stream");
    const Point& p = other.point(ticket);
    on_backend(device, [&](catena_ctx* ctx) {
        return device.table.event_wait(ctx, device.dev, p.event, native);
    });
    advance();
    seen = p.ticket;
}

void Queue::finish(std::uint64_t ticket) {
    if (!async) return;
    std::uint64_t until = now();
    ticket = std::min(ticket, until);
    if (ticket <= done_.load(std::memory_order_acquire)) return;
    if (recording.load()) refuse("a wait of the host");
    catena_event* event = nullptr;
    if (device.events) {  // wait only for an event that covers the ticket
        const std::lock_guard lock(mutex_);
        if (const Point* known = find(ticket)) {
            event = known->event;
            until = known->ticket;
        }
    }
    on_backend(device, [&](catena_ctx* ctx) {
        return event ? device.events->event_sync(ctx, device.dev, event)
                     : device.table.stream_sync(ctx, device.dev, native);
    });
    known_done(until);
}

void Queue::known_done(std::uint64_t ticket) noexcept {
    std::uint64_t before = done_.load(std::memory_order_relaxed);
    while (before < ticket &&
           !done_.compare_exchange_weak(before, ticket, std::memory_order_acq_rel)) {
    }
}

bool Queue::done() {
    const std::uint64_t until = now();
    if (!async || until <= done_.load(std::memory_order_acquire)) return true;
    if (!device.events) {
        raise<UnsupportedError>("[stream] done(): expected a backend that can say it, got {}",
                                device.name);
    }
    return ask(nullptr, until);
}

// Whether the event is done, or, if point is null, all work of the stream.
bool Queue::ask(const Point* point, std::uint64_t until) {
    std::int32_t done = 0;
    on_backend(device, [&](catena_ctx* ctx) {
        return point ? device.events->event_query(ctx, device.dev, point->event, &done)
                     : device.events->stream_query(ctx, device.dev, native, &done);
    });
    if (done) known_done(until);
    return done != 0;
}

bool Queue::reached(std::uint64_t ticket) noexcept {
    ticket = std::min(ticket, now());
    if (!async || ticket <= done_.load(std::memory_order_acquire)) return true;
    if (recording.load()) return false;
    try {
        if (!device.events) return finish(ticket), true;
        const std::lock_guard lock(mutex_);
        const Point* known = find(ticket);
        return ask(known, known ? known->ticket : now());
    } catch (...) {  // unknown: counts as not done
        return false;
    }
}

void Queue::mark() {
    if (!async || recording.load()) return;
    const std::lock_guard lock(mutex_);
    point(now());
}

}  // namespace catena
