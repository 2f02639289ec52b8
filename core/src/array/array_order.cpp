// The order of uses of an array on several queues.
#include "array/array_ops.hpp"
#include "array/recording.hpp"

#include <catena/core/error.hpp>

#include <algorithm>
#include <memory>
#include <mutex>

namespace catena {

Queue& queue_in_scopes(DeviceState& device) noexcept {
    for (const using_stream* scope = streams; scope; scope = scope->outer()) {
        Queue& queue = *scope->stream().queue();
        if (&queue.device == &device) return recorded(queue);
    }
    return recorded(device.main());
}

void use(const Stream& stream, const Array& array, bool writes) {
    Queue& queue = recorded(queue_of(stream));
    if (!array) throw InvalidError("[stream] use(): expected an array, got an empty handle");
    if (!writes) return before_read(*array.body(), queue);
    before_write(*array.body(), queue);
    written(*array.body());
    after_write(*array.body(), queue, Queue::end);  // whenever it is given
    queue.advance();
}

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
        if (extra)
            for (Queue* reader : extra->readers) settle(home->queue, *reader);
        home->free(body.block, body.capacity);
    } else if (extra && extra->pinned) {  // its next user waits
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
