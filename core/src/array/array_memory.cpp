// Streams, the order of uses of arrays on several queues, and copies between host and devices.
#include "array/array_ops.hpp"

#include <cstring>

namespace catena {

constinit thread_local const using_stream* streams = nullptr;

Queue& queue_in_scopes(DeviceState& device) noexcept {
    for (const using_stream* scope = streams; scope; scope = scope->outer()) {
        Queue& queue = *scope->stream().queue();
        if (&queue.device == &device) return recorded(queue);
    }
    return recorded(device.main());
}

void use(const Stream& stream, const Array& array, bool writes) {
    Queue& queue = recorded(queue_of(stream));
    if (!array) raise<InvalidError>("[stream] use(): expected an array, got an empty handle");
    if (!writes) return before_read(*array.body(), queue);
    before_write(*array.body(), queue);
    written(*array.body());
    after_write(*array.body(), queue, Queue::end);  // covers work that the program launches later
    queue.advance();
}

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
MemoryStats Stream::memory() const { return queue_of(*this).own->stats(); }
catena_stream* Stream::native() const { return queue_of(*this).native; }

using_stream::using_stream(const Stream& stream) : stream_(stream), outer_(streams) {
    queue_of(stream);
    streams = this;
}
using_stream::~using_stream() { streams = outer_; }

namespace {

std::mutex& extras() {
    static auto* mutex = new std::mutex;  // guards all lists of readers
    return *mutex;
}

// The recorder whose recording owns the array's memory.
Recorder& recorder_of(ArrayBody& owner) { return static_cast<Recorder&>(owner.home->queue); }

// Makes later work of `queue` wait for all work submitted to `other` so far. Never fails.
void settle(Queue& queue, Queue& other) noexcept {
    try {
        queue.after(other, Queue::end);
    } catch (...) {
        try {
            other.finish();
        } catch (...) {  // the device is lost: every later call reports it
        }
    }
}

SmallVector<Queue*, 2> take_readers(ArrayBody& owner) {
    const std::lock_guard lock(extras());
    ArrayExtra* extra = owner.extra.load(std::memory_order_acquire);
    return extra ? std::exchange(extra->readers, {}) : SmallVector<Queue*, 2>();
}

bool plain(const DeviceState& device) { return device.host_accessible() && !device.async(); }

// Returns the last writer's queue, which needs no wait, if it is of the array's device, else the thread's.
Queue& reading_queue(ArrayBody& body) {
    Queue& writer = *owner_of(body).queue.load(std::memory_order_acquire);
    return &writer.device == body.device ? writer : current_queue(*body.device);
}

// Whether the array is pinned memory that the device can copy asynchronously.
bool is_pinned_for(ArrayBody& body, const DeviceState& device) {
    const ArrayExtra* extra = owner_of(body).extra.load(std::memory_order_acquire);
    return extra && extra->pinned && &extra->pinned->device.table == &device.table &&
           device.memory && device.memory->copy_async;
}

// Submits backend work that reads `from` and writes `to`. Returns false if the backend does not support it.
template <class Call>
bool give(Queue& queue, ArrayBody& to, ArrayBody& from, const Call& call) {
    before_read(from, queue);
    before_write(to, queue);
    bool can = true;
    submit(queue, [&](catena_ctx* ctx) {
        const catena_status status = call(ctx);
        can = status != CATENA_E_UNSUPPORTED;
        return can ? status : CATENA_OK;
    });
    if (can) after_write(to, queue, queue.last());
    return can;
}

// Copies `from` to `to`. queue: of to's device, or of from's device if only that one is asynchronous.
void copy_on(Queue& queue, ArrayBody& to, ArrayBody& from) {
    DeviceState& a = *to.device;
    DeviceState& b = *from.device;
    const std::uint64_t bytes = to.tensor.nbytes;
    if (bytes == 0) return;
    if (plain(a) && plain(b)) {
        before_host(from, false);
        before_host(to, true);
        std::memmove(memory_of(to), memory_of(from), bytes);
        return after_write(to, a.main(), 0);
    }
    if (&a == &b) {
        before_read(from, queue);
        before_write(to, queue);
        a.copy(queue, memory_of(to), memory_of(from), bytes, CATENA_COPY_DEVICE_TO_DEVICE);
        return after_write(to, queue, queue.last());
    }
    DeviceState& d = queue.device;
    const auto copy_async = [&](int direction) {
        return give(queue, to, from, [&](catena_ctx* ctx) {
            return d.memory->copy_async(ctx, d.dev, queue.native, memory_of(to), memory_of(from),
                                        bytes, direction);
        });
    };
    const auto copy_peer = [&](catena_ctx* ctx) {
        return a.memory->copy_peer(ctx, a.dev, queue.native, memory_of(to), b.dev, memory_of(from),
                                   bytes);
    };
    if (plain(b)) {
        if (is_pinned_for(from, a) && copy_async(CATENA_COPY_HOST_TO_DEVICE)) return;
    } else if (plain(a)) {
        if (&d == &b && is_pinned_for(to, b) && copy_async(CATENA_COPY_DEVICE_TO_HOST)) return;
        Queue& reading = reading_queue(from);
        before_read(from, reading);
        before_host(to, true);
        b.copy(reading, memory_of(to), memory_of(from), bytes, CATENA_COPY_DEVICE_TO_HOST);
        return after_write(to, a.main(), 0);
    } else if (&a.table == &b.table && a.memory && a.memory->copy_peer) {
        if (give(queue, to, from, copy_peer)) return;
    }
    std::unique_ptr<char[]> staging;  // for devices that cannot copy directly
    copy_from_host(queue, to, on_host(from, staging));
}

}  // namespace

void copy_from_host(Queue& queue, ArrayBody& to, const void* bytes) {
    before_write(to, queue);
    queue.device.copy(queue, memory_of(to), bytes, to.tensor.nbytes, CATENA_COPY_HOST_TO_DEVICE);
    after_write(to, queue, queue.last());
}

bool is_recorded(const ArrayBody& body) noexcept {
    const CachingAllocator* home = body.base ? body.base->home : body.home;
    return home && home->recorded();
}

void after_write(ArrayBody& body, Queue& queue, std::uint64_t ticket) noexcept {
    ArrayBody& owner = owner_of(body);
    owner.queue.store(&queue, std::memory_order_release);
    owner.ticket = is_recorded(owner) ? Queue::end : ticket;
}

ArrayExtra& extra_of(ArrayBody& body) {
    const std::lock_guard lock(extras());
    ArrayExtra* extra = body.extra.load(std::memory_order_acquire);
    if (!extra) body.extra.store(extra = new ArrayExtra, std::memory_order_release);
    return *extra;
}

void read_elsewhere(ArrayBody& owner, Queue& queue) {
    if (Recorder* recorder = queue.recording.load()) recorder->uses(owner, false);
    if (is_recorded(owner)) recorder_of(owner).used_by(queue, false);
    Queue* writer = owner.queue.load(std::memory_order_acquire);
    queue.after(*writer, owner.ticket);
    if (!queue.async) {  // the host has waited, so later uses need not wait
        if (!writer->async || owner.device == &queue.device) owner.queue.store(&queue);
        return;
    }
    ArrayExtra& extra = extra_of(owner);
    const std::lock_guard lock(extras());
    if (std::find(extra.readers.begin(), extra.readers.end(), &queue) == extra.readers.end())
        extra.readers.push_back(&queue);
}

void write_elsewhere(ArrayBody& owner, Queue& queue) {
    Recorder* const recorder = queue.recording.load();
    if (recorder && owner.queue.load() != &queue) recorder->uses(owner, true);
    if (is_recorded(owner)) recorder_of(owner).used_by(queue, true);
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
    } else if (extra && extra->pinned) {  // reused when this work is done
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

// ---- copies

const void* on_host(const ArrayBody& body, std::unique_ptr<char[]>& staging) {
    auto& from = const_cast<ArrayBody&>(body);
    if (body.device->host_accessible()) {
        before_host(from, false);
        return memory_of(body);
    }
    staging = std::make_unique_for_overwrite<char[]>(body.tensor.nbytes);
    Queue& queue = reading_queue(from);
    before_read(from, queue);
    body.device->copy(queue, staging.get(), memory_of(body), body.tensor.nbytes,
                      CATENA_COPY_DEVICE_TO_HOST);
    return staging.get();
}

Array Array::to(Device device) const {
    const ArrayBody& body = need_memory(*this);
    if (body.device == device.state()) return *this;
    Array target = empty(shape(), dtype(), device);
    target.copy_from(*this);
    return target;
}

Array Array::to(Device device, const Stream& stream) const {
    const ArrayBody& body = need_memory(*this);
    if (body.device == device.state()) return *this;
    if (!device || !stream) raise<InvalidError>("[to] expected a device and a stream, got none");
    Queue& queue = recorded(*stream.queue());
    DeviceState& a = *device.state();
    const bool out = &queue.device == body.device && plain(a);
    if (!out && &queue.device != &a) {
        raise<DeviceError>("[to] stream: expected one of {}, got one of {}",
                           (plain(a) ? *body.device : a).name, queue.device.name);
    }
    Array target =
        out ? pinned(shape(), dtype(), stream.device()) : empty_on(queue, shape(), dtype());
    written(*target.body_);
    copy_on(queue, *target.body_, *body_);
    queue.mark();
    return target;
}

Array Array::from_host(const void* data, std::int64_t count, Dtype dtype, const Shape& shape,
                       const std::int64_t* strides, Device device) {
    if (count != shape.size()) {
        raise<ShapeError>("[array] values: expected {} for shape {}, got {}", shape.size(), shape,
                          count);
    }
    Array array = empty(shape, dtype, device);
    ArrayBody& to = *array.body_;
    const auto item = static_cast<std::size_t>(item_size(dtype));
    std::vector<char> dense;
    if (strides && count) {  // gather the elements in row-major order
        dense.resize(to.tensor.nbytes);
        std::int64_t index[CATENA_MAX_NDIM] = {};
        const auto* source = static_cast<const char*>(data);
        for (std::size_t i = 0; i < dense.size(); i += item) {
            std::int64_t offset = 0;
            for (int d = 0; d < shape.ndim(); ++d) offset += index[d] * strides[d];
            std::memcpy(dense.data() + i, source + offset * static_cast<std::int64_t>(item), item);
            for (int d = shape.ndim() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
        }
        data = dense.data();
    }
    if (!plain(*to.device)) copy_from_host(current_queue(*to.device), to, data);
    else if (count) std::memcpy(memory_of(to), data, to.tensor.nbytes);
    return array;
}

Array Array::astype(Dtype target) const {
    ArrayBody& body = need_memory(*this);
    if (target == dtype()) return *this;
    Array converted = empty(shape(), target, Device(body.device));
    ArrayBody& to = *converted.body_;
    DeviceState& device = *body.device;
    Queue& queue = current_queue(device);
    const auto convert_there = [&](catena_ctx* ctx) {
        return device.memory->convert(ctx, device.dev, queue.native, memory_of(to), to.meta.dtype,
                                      memory_of(body), body.meta.dtype,
                                      static_cast<std::uint64_t>(size()));
    };
    if (device.memory && device.memory->convert && size() != 0 &&
        give(queue, to, body, convert_there))
        return converted;
    std::unique_ptr<char[]> staging, result;
    const void* const source = on_host(body, staging);
    if (!plain(device)) result = std::make_unique_for_overwrite<char[]>(to.tensor.nbytes);
    convert(dtype(), source, target, result ? result.get() : memory_of(to), size());
    if (result) copy_from_host(queue, to, result.get());
    return converted;
}

void Array::copy_from(const Array& source) const {
    ArrayBody& to = need_memory(*this);
    ArrayBody& from = need_memory(source);
    if (!(shape() == source.shape()) || dtype() != source.dtype()) {
        raise<ShapeError>("[copy] source: expected {} {}, got {} {}", shape(), dtype(),
                          source.shape(), source.dtype());
    }
    written(to);
    copy_on(current_queue(*to.device), to, from);
}

void Array::fill(double value) const {
    ArrayBody& body = need_memory(*this);
    if (size() == 0) return;
    written(body);
    DeviceState& device = *body.device;
    const std::size_t item = body.meta.dtype.bits / 8u;
    const std::uint64_t bytes = body.tensor.nbytes;
    const auto fill_host = [&](char* target) {
        convert(Dtype::float64, &value, dtype(), target, 1);
        for (std::size_t done = item; done < bytes; done *= 2) {  // double the filled part
            std::memcpy(target + done, target, std::min<std::size_t>(done, bytes - done));
        }
    };
    if (plain(device)) {
        before_host(body, true);
        fill_host(static_cast<char*>(memory_of(body)));
        return after_write(body, device.main(), 0);
    }
    Queue& queue = current_queue(device);
    if (!device.memory || !device.memory->fill) {
        std::vector<char> staging(bytes);
        fill_host(staging.data());
        return copy_from_host(queue, body, staging.data());
    }
    alignas(16) char element[16];
    convert(Dtype::float64, &value, dtype(), element, 1);
    before_write(body, queue);
    submit(queue, [&](catena_ctx* ctx) {
        return device.memory->fill(ctx, device.dev, queue.native, memory_of(body), element,
                                   static_cast<std::uint32_t>(item), bytes / item);
    });
    after_write(body, queue, queue.last());
}

void* Array::host_data(Dtype wanted, bool writes) const {
    ArrayBody& body = need_memory(*this);
    if (!body.device->host_accessible()) {
        raise<DeviceError>(
            "[array] host(): expected a device that the host can reach, got {}; copy it with to()",
            body.device->name);
    }
    if (wanted != dtype())
        raise<DtypeError>("[array] host(): expected {}, got {}", wanted, dtype());
    before_host(body, writes);
    if (writes) {
        // Threads that fill parts of one array may run this concurrently; one increment is enough.
        const std::atomic_ref version(owner_of(body).version);
        version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    return memory_of(body);
}

void Array::require_item() const {
    if (size() != 1)
        raise<ShapeError>("[array] item(): expected one element, got shape {}", shape());
}

void Array::to_host(Dtype wanted, void* target) const {
    std::unique_ptr<char[]> staging;
    convert(dtype(), on_host(need_memory(*this), staging), wanted, target, size());
}

void Array::synchronize() const {
    ArrayBody& owner = owner_of(need_memory(*this));
    owner.queue.load(std::memory_order_acquire)->finish(owner.ticket);
}

Array Array::wrap(Device device, void* data, const Shape& shape, Dtype dtype,
                  std::function<void()> release) {
    Queue& queue = current_queue(state_or_current(device));
    Ref<ArrayBody> body = make_body(shape, dtype, queue.device);
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto item = static_cast<std::uintptr_t>(item_size(dtype));
    if (address % item != 0 || (!data && body->tensor.nbytes)) {
        raise<InvalidError>("[array] wrap(): expected an address aligned to {} bytes, got {}", item,
                            data);
    }
    static char nothing;  // the block if data is null: has_memory() requires one
    if (release) extra_of(*body).release = std::move(release);
    body->block = data ? data : &nothing;
    body->tensor.dl.data = data;
    body->tensor.align_log2 = alignment_of(data);
    body->queue.store(&queue, std::memory_order_relaxed);
    body->ticket = queue.now();
    return Array(std::move(body));
}

Array Array::pinned(const Shape& shape, Dtype dtype, Device device) {
    PinnedPool& pool = state_or_current(device).pinned;
    DeviceState& host = default_device();
    if (!plain(host))
        raise<DeviceError>("[array] pinned(): expected a device in the host's memory, got none");
    Ref<ArrayBody> body = make_body(shape, dtype, host);
    std::uint64_t capacity = 0;
    void* const memory = pool.allocate(body->tensor.nbytes, capacity);
    if (!memory) return empty_on(host.main(), shape, dtype);
    extra_of(*body).pinned = &pool;
    body->block = body->tensor.dl.data = memory;
    body->capacity = capacity;
    body->queue.store(&host.main(), std::memory_order_relaxed);
    return Array(std::move(body));
}

bool Array::is_pinned() const {
    const ArrayExtra* extra = owner_of(need_memory(*this)).extra.load(std::memory_order_acquire);
    return extra && extra->pinned;
}

}  // namespace catena
