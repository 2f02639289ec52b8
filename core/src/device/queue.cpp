// Queues of work: tickets, events behind them, and the order of uses of an array.
#include "device/queue.hpp"

#include "device/context.hpp"
#include "device/device_state.hpp"
#include "array/recording.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

constinit thread_local const using_stream* streams = nullptr;

Queue& queue_in_scopes(DeviceState& device) noexcept {
    for (const using_stream* scope = streams; scope; scope = scope->outer()) {
        Queue& queue = *scope->stream().queue();
        if (&queue.device == &device) return recorded(queue);
    }
    return recorded(device.main());
}

Queue::Queue(DeviceState& of, catena_stream* stream, CachingAllocator::Kind kind)
    : device(of), native(stream), async(of.async()), own(*this, kind) {}

// It belongs to the device.
Stream Queue::as_stream() noexcept {
    return Stream(std::shared_ptr<Queue>(std::shared_ptr<void>(), this));
}

void Queue::check(catena_ctx& ctx, catena_status status) const {
    if (status != CATENA_OK) throw_failure(ctx, status, device.name);
}

void Queue::refuse(const char* what) const {
    throw UnsupportedError(
        fmt::format("[recording] {}: expected work that stays on the recorded stream, got {}",
                    device.name, what));
}

// The earliest event that is behind a ticket, or null. Under mutex_.
Queue::Point* Queue::find(std::uint64_t ticket) {
    Point* best = nullptr;
    for (Point& p : points_) {
        if (p.ticket >= ticket && (!best || p.ticket < best->ticket)) best = &p;
    }
    return best;
}

Queue::Point& Queue::point(std::uint64_t ticket) {
    if (Point* known = find(ticket)) return *known;
    Point& p = points_[next_point_++ % std::size(points_)];
    catena_ctx ctx;
    ctx.device = &device;
    p.ticket = 0;  // until it is recorded
    if (!p.event) check(ctx, device.table.event_create(&ctx, device.dev, &p.event));
    const std::uint64_t until = now();
    check(ctx, device.table.event_record(&ctx, device.dev, p.event, native));
    p.ticket = until;
    return p;
}

// Under mutex_.
std::uint64_t& Queue::seen(const Queue& other) {
    for (auto& [queue, ticket] : seen_) {
        if (queue == &other) return ticket;
    }
    return seen_.emplace_back(&other, 0).second;
}

void Queue::after(Queue& other, std::uint64_t ticket) {
    if (&other == this || !other.async) return;
    if (other.native == native && &other.device == &device) return;  // a recorder and its stream
    ticket = std::min(ticket, other.now());
    if (ticket <= other.done_.load(std::memory_order_acquire)) return;
    if (!async || &other.device.table != &device.table) return other.finish(ticket);
    {
        const std::lock_guard lock(mutex_);
        if (seen(other) >= ticket) return;
    }
    if (recording.load() || other.recording.load()) refuse("a wait for another stream");
    std::uint64_t until = 0;
    {
        const std::lock_guard lock(other.mutex_);
        const Point& p = other.point(ticket);
        until = p.ticket;
        catena_ctx ctx;
        ctx.device = &device;
        check(ctx, device.table.event_wait(&ctx, device.dev, p.event, native));
    }
    advance();
    const std::lock_guard lock(mutex_);
    std::uint64_t& known = seen(other);
    known = std::max(known, until);
}

void Queue::after(catena_event* event) {
    if (recording.load()) refuse("a wait for an event");
    catena_ctx ctx;
    ctx.device = &device;
    check(ctx, device.table.event_wait(&ctx, device.dev, event, native));
    advance();
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
    catena_ctx ctx;
    ctx.device = &device;
    check(ctx, event ? device.events->event_sync(&ctx, device.dev, event)
                     : device.table.stream_sync(&ctx, device.dev, native));
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
        throw UnsupportedError(fmt::format(
            "[stream] done(): expected a backend that can say it, got {}", device.name));
    }
    catena_ctx ctx;
    ctx.device = &device;
    std::int32_t done = 0;
    check(ctx, device.events->stream_query(&ctx, device.dev, native, &done));
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
        const std::uint64_t until = known ? known->ticket : now();
        catena_ctx ctx;
        ctx.device = &device;
        std::int32_t done = 0;
        check(ctx, known ? device.events->event_query(&ctx, device.dev, known->event, &done)
                         : device.events->stream_query(&ctx, device.dev, native, &done));
        if (done) known_done(until);
        return done != 0;
    } catch (...) {  // nobody knows: not yet
        return false;
    }
}

void Queue::record(catena_event* event) {
    if (recording.load()) refuse("an event");
    catena_ctx ctx;
    ctx.device = &device;
    check(ctx, device.table.event_record(&ctx, device.dev, event, native));
}

void Queue::mark() {
    if (!async || recording.load()) return;
    const std::lock_guard lock(mutex_);
    point(now());
}

// ---- recorders

void Queue::used_by(Queue& other, bool writes) {
    if (&other == this) return;
    const std::lock_guard lock(mutex_);
    for (auto& [user, wrote] : users_) {
        if (user != &other) continue;
        wrote = wrote || writes;
        return;
    }
    users_.emplace_back(&other, writes);
}

void Queue::after_users() {
    SmallVector<std::pair<Queue*, bool>, 2> users;
    {
        const std::lock_guard lock(mutex_);
        users = users_;
        users_.clear();
        for (const auto& [user, writes] : users) {
            if (writes) users_.emplace_back(user, true);
        }
    }
    for (const auto& [user, writes] : users) after(*user, end);
}

void Queue::before_writers() {
    SmallVector<std::pair<Queue*, bool>, 2> writers;
    {
        const std::lock_guard lock(mutex_);
        writers = users_;
    }
    for (const auto& [user, writes] : writers) {
        if (writes) user->after(*this, end);
    }
}

void Queue::forget_users() {
    const std::lock_guard lock(mutex_);
    users_.clear();
}

void Queue::sees_as(Queue& queue) {
    const std::scoped_lock lock(mutex_, queue.mutex_);
    seen_ = queue.seen_;
}

// ---- uses of arrays

namespace {

std::mutex& extras() {
    static auto* mutex = new std::mutex;  // of all lists of readers
    return *mutex;
}

// Work of the queue, and later of others, comes after what the other was given so far; never fails.
void settle(Queue& queue, Queue& other) noexcept {
    try {
        queue.after(other, Queue::end);
    } catch (...) {
        try {
            other.finish();
        } catch (...) {  // the device is lost: every later call will say so
        }
    }
}

SmallVector<Queue*, 2> take_readers(ArrayBody& owner) {
    const std::lock_guard lock(extras());
    ArrayExtra* extra = owner.extra.load(std::memory_order_acquire);
    return extra ? std::exchange(extra->readers, {}) : SmallVector<Queue*, 2>();
}

}  // namespace

ArrayExtra& extra_of(ArrayBody& body) {
    const std::lock_guard lock(extras());
    ArrayExtra* extra = body.extra.load(std::memory_order_acquire);
    if (!extra) body.extra.store(extra = new ArrayExtra, std::memory_order_release);
    return *extra;
}

void read_elsewhere(ArrayBody& owner, Queue& queue) {
    if (Recording* recording = queue.recording.load()) recording->note(owner, false);
    if (owner.home && owner.home->recorded()) owner.home->queue.used_by(queue, false);
    Queue* writer = owner.queue.load(std::memory_order_acquire);
    queue.after(*writer, owner.ticket);
    if (!queue.async) {  // the host has waited: nobody has to any more
        if (!writer->async || owner.device == &queue.device) owner.queue.store(&queue);
        return;
    }
    ArrayExtra& extra = extra_of(owner);
    const std::lock_guard lock(extras());
    if (std::find(extra.readers.begin(), extra.readers.end(), &queue) == extra.readers.end())
        extra.readers.push_back(&queue);
}

void write_elsewhere(ArrayBody& owner, Queue& queue) {
    Recording* recording = queue.recording.load();
    if (recording && owner.queue.load() != &queue) recording->note(owner, true);
    if (owner.home && owner.home->recorded()) owner.home->queue.used_by(queue, true);
    queue.after(*owner.queue.load(std::memory_order_acquire), Queue::end);
    for (Queue* reader : take_readers(owner)) queue.after(*reader, Queue::end);
}

void before_host(ArrayBody& body, bool writes) {
    ArrayBody& owner = owner_of(body);
    Queue& writer = *owner.queue.load(std::memory_order_acquire);
    writer.finish(writes ? Queue::end : owner.ticket);
    if (!writes) return;
    for (Queue* reader : take_readers(owner)) reader->finish();
}

void give_back_memory(ArrayBody& body) noexcept {
    const std::unique_ptr<ArrayExtra> extra(body.extra.load(std::memory_order_acquire));
    Queue& last = *body.queue.load(std::memory_order_acquire);
    CachingAllocator* home = body.home;
    if (home) {
        settle(home->queue, last);
        if (extra) {
            for (Queue* reader : extra->readers) settle(home->queue, *reader);
        }
        home->free(body.block, body.capacity);
    } else if (extra && extra->pinned) {  // whoever gets it next waits
        PinnedPool::Uses uses{{&last, last.now()}};
        for (Queue* reader : extra->readers) uses.emplace_back(reader, reader->now());
        extra->pinned->free(body.block, body.capacity, std::move(uses));
    } else if (extra && extra->release) {
        try {
            last.finish();
            for (Queue* reader : extra->readers) reader->finish();
        } catch (...) {  // the device is lost
        }
        try {
            extra->release();
        } catch (...) {
        }
    }
    body.block = nullptr;
    body.home = nullptr;
    body.extra.store(nullptr, std::memory_order_relaxed);
}

}  // namespace catena
