// Streams: tickets, and the events behind them.
#include "device/queue.hpp"

#include "device/device_state.hpp"

#include <algorithm>

namespace catena {

constinit thread_local const using_stream* streams = nullptr;

Queue::Queue(DeviceState& of, catena_stream* stream, bool recorder)
    : device(of), native(stream), async(of.async()), own(*this, recorder) {}

// The device's own: it is not given back.
Stream Queue::as_stream() noexcept {
    return Stream(std::shared_ptr<Queue>(std::shared_ptr<void>(), this));
}

void Queue::check(catena_ctx& ctx, catena_status status) const {
    if (status != CATENA_OK) throw_failure(ctx, status, device.name);
}

void Queue::refuse(const char* what) const {
    raise<UnsupportedError>(
        "[recording] {}: expected work that stays on the recorded stream, got {}", device.name,
        what);
}

// The earliest event that is behind a ticket, or null. Under mutex_.
Queue::Point* Queue::find(std::uint64_t ticket) {
    Point* best = nullptr;
    for (Point& p : points_)
        if (p.ticket >= ticket && (!best || p.ticket < best->ticket)) best = &p;
    return best;
}

Queue::Point& Queue::point(std::uint64_t ticket) {
    if (Point* known = find(ticket)) return *known;
    Point& p = points_[next_point_++ % std::size(points_)];
    p.ticket = 0;  // until it is recorded
    const catena_backend& b = device.table;
    on_backend(device, [&](catena_ctx* ctx) {
        return p.event ? CATENA_OK : b.event_create(ctx, device.dev, &p.event);
    });
    const std::uint64_t until = now();
    on_backend(device,
               [&](catena_ctx* ctx) { return b.event_record(ctx, device.dev, p.event, native); });
    p.ticket = until;
    return p;
}

void Queue::after(Queue& other, std::uint64_t ticket) {
    if (&other == this || !other.async) return;
    if (other.native == native && &other.device == &device) return;  // a recorder and its stream
    ticket = std::min(ticket, other.now());
    if (ticket <= other.done_.load(std::memory_order_acquire)) return;
    if (!async || &other.device.table != &device.table) return other.finish(ticket);
    {
        const std::lock_guard lock(mutex_);
        if (seen_[&other] >= ticket) return;
    }
    if (recording.load() || other.recording.load()) refuse("a wait for another stream");
    std::uint64_t until = 0;
    {
        const std::lock_guard lock(other.mutex_);
        const Point& p = other.point(ticket);
        until = p.ticket;
        wait_for(p.event);
    }
    advance();
    const std::lock_guard lock(mutex_);
    std::uint64_t& known = seen_[&other];
    known = std::max(known, until);
}

void Queue::after(catena_event* event) {
    if (recording.load()) refuse("a wait for an event");
    wait_for(event);
    advance();
}

void Queue::wait_for(catena_event* event) {
    on_backend(device, [&](catena_ctx* ctx) {
        return device.table.event_wait(ctx, device.dev, event, native);
    });
}

void Queue::finish(std::uint64_t ticket) {
    if (!async) return;
    std::uint64_t until = now();
    ticket = std::min(ticket, until);
    if (ticket <= done_.load(std::memory_order_acquire)) return;
    if (recording.load()) refuse("a wait of the host");
    catena_event* event = nullptr;
    if (device.events) {  // exactly what is needed, where there is an event for it
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

// Whether the event, or all of the stream, is reached.
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
    } catch (...) {  // nobody knows: not yet
        return false;
    }
}

void Queue::record(catena_event* event) {
    if (recording.load()) refuse("an event");
    on_backend(device, [&](catena_ctx* ctx) {
        return device.table.event_record(ctx, device.dev, event, native);
    });
}

void Queue::mark() {
    if (!async || recording.load()) return;
    const std::lock_guard lock(mutex_);
    point(now());
}

// ---- streams, as programs have them

Queue& queue_of(const Stream& stream) {
    if (!stream) raise<InvalidError>("[stream] expected a stream, got an empty handle");
    return *stream.queue();
}

Stream::Stream(Device device) {
    DeviceState& state = state_or_current(device);
    Queue& queue = state.take_queue();
    if (&queue == &state.main()) *this = queue.as_stream();
    else queue_ = {&queue, [](Queue* done) { done->device.give_back_queue(*done); }};
}

Stream Stream::current(Device device) {
    DeviceState& state = state_or_current(device);
    for (const using_stream* scope = streams; scope; scope = scope->outer())
        if (&scope->stream().queue()->device == &state) return scope->stream();
    return state.main().as_stream();
}

Device Stream::device() const { return Device(&queue_of(*this).device); }
void Stream::synchronize() const {
    Queue& queue = queue_of(*this);
    if (queue.recording.load()) queue.refuse("a wait of the host");
    queue.finish();
}
bool Stream::done() const {
    Queue& queue = queue_of(*this);
    if (queue.recording.load()) queue.refuse("a question of the host");
    return queue.done();
}
void Stream::wait(const Stream& other) const { queue_of(*this).after(queue_of(other), Queue::end); }
MemoryStats Stream::memory() const { return queue_of(*this).own.stats(); }
catena_stream* Stream::native() const { return queue_of(*this).native; }

using_stream::using_stream(const Stream& stream) : stream_(stream), outer_(streams) {
    queue_of(stream);
    streams = this;
}
using_stream::~using_stream() { streams = outer_; }

void Queue::sees_as(Queue& queue) {
    const std::scoped_lock lock(mutex_, queue.mutex_);
    seen_ = queue.seen_;
}

}  // namespace catena
