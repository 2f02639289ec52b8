// Devices: opening, the thread's current device, random states, streams.
#include "device/device_state.hpp"

#include <limits.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>

namespace catena {
namespace {

thread_local DeviceState* current = nullptr;
thread_local const Device* fallback = nullptr;  // set by the innermost using_fallback scope

}  // namespace

std::uint64_t seed_of(std::uint64_t seed, int ordinal) noexcept {
    return seed ^ static_cast<std::uint64_t>(ordinal) * 0x9e3779b97f4a7c15u;
}

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
        given = static_cast<const Table*>(backend_extension(Device(this), id));
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

Queue& DeviceState::add_queue(std::unique_ptr<Queue> queue) {
    const std::lock_guard lock(mutex_);
    return *queues_.emplace_back(std::move(queue));
}

std::vector<Queue*> DeviceState::queues() {
    const std::lock_guard lock(mutex_);
    std::vector<Queue*> all;
    for (const auto& queue : queues_) all.push_back(queue.get());
    return all;
}

void DeviceState::copy(Queue& queue, void* target, const void* source, std::uint64_t bytes,
                       int direction) {
    if (bytes == 0) return;
    if (queue.recording.load() && direction != CATENA_COPY_DEVICE_TO_DEVICE)
        queue.refuse("a copy of host memory that is not pinned");
    queue.give([&](catena_ctx* ctx) {
        return table.copy(ctx, dev, queue.native, target, source, bytes, direction);
    });
    if (direction == CATENA_COPY_DEVICE_TO_HOST) queue.finish();
}

void DeviceState::synchronize() {
    const std::shared_lock waiting(waits);
    if (heap.recordings.load() > 0) main_->refuse("a wait of the host");
    std::vector<std::pair<Queue*, std::uint64_t>> reached;
    for (Queue* queue : queues()) reached.emplace_back(queue, queue->now());
    on_backend(*this, [&](catena_ctx* ctx) { return table.sync(ctx, dev); });
    for (const auto& [queue, ticket] : reached) queue->known_done(ticket);
}

MemorySize DeviceState::memory_size() {
    MemorySize size;
    if (!table.memory) return size;
    catena_ctx ctx;
    ctx.device = this;
    std::uint64_t free = 0, total = 0;
    if (table.memory(&ctx, dev, &free, &total) != CATENA_OK) return size;
    if (free > total || total > largest_memory) return size;  // the numbers are invalid
    return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

void DeviceState::release_cached() noexcept {
    main_->own.release_cached();
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

DeviceState& state_of(Device device) {
    if (!device) raise<InvalidError>("[device] expected a device, got an empty handle");
    return *device.state();
}

DeviceState& state_or_current(Device device) {
    return *(device ? device : Device::current()).state();
}

const void* backend_extension(Device device, const char* id) {
    const DeviceState& state = state_of(device);
    if (!state.table.get_extension) return nullptr;
    const PluginStep step(state.backend.plugin->file, "get_extension()");
    return state.table.get_extension(state.dev, id);
}

void* backend_device(Device device) { return state_of(device).dev; }

void call_backend(Device device, std::string_view what,
                  const std::function<catena_status(catena_ctx*, void*)>& call) {
    DeviceState& state = state_of(device);
    catena_ctx ctx;
    ctx.device = &state;
    const catena_status status = call(&ctx, state.dev);
    if (status != CATENA_OK) throw_failure(ctx, status, std::string(what));
}

Device Device::current() { return Device(catena::current ? catena::current : &default_device()); }

const std::string& Device::name() const { return state_of(*this).name; }
std::string_view Device::backend() const { return state_of(*this).table.name; }
int Device::ordinal() const { return state_of(*this).ordinal; }
bool Device::host_accessible() const { return state_of(*this).host_accessible(); }
void Device::synchronize() const { state_of(*this).synchronize(); }
MemoryStats Device::memory() const {
    DeviceMemory& heap = state_of(*this).heap;
    const std::lock_guard lock(heap.mutex);
    MemoryStats stats = heap.stats;
    for (const CachingAllocator* pool : heap.pools) {  // blocks cached by this thread are free
        stats.in_use -= pool->at_hand();
        stats.cached += pool->at_hand();
    }
    return stats;
}
MemorySize Device::memory_size() const { return state_of(*this).memory_size(); }
void Device::reset_peak_memory() const {
    DeviceMemory& heap = state_of(*this).heap;
    const std::lock_guard lock(heap.mutex);
    heap.stats.peak = heap.stats.in_use;
    for (CachingAllocator* pool : heap.pools) pool->reset_peak();
}
void Device::release_cached() const { state_of(*this).release_cached(); }

int Device::threads() const {
    const DeviceState& state = state_of(*this);
    return state.threads ? state.threads->count(state.dev) : 1;
}

void Device::set_threads(int n) const {
    const DeviceState& state = state_of(*this);
    if (state.threads) state.threads->set_count(state.dev, n);
}

using_device::using_device(Device device) : before_(catena::current) {
    catena::current = device.state();
}
using_device::~using_device() { catena::current = before_.state(); }

void use_device(Device device) { catena::current = device.state(); }

Device Device::fallback() {
    if (catena::fallback) return *catena::fallback;
    static const Device wish = [] {
        const char* name = std::getenv("CATENA_FALLBACK");
        return name && *name ? get(name) : Device();
    }();
    return wish;
}

using_fallback::using_fallback(Device device) : device_(device), before_(catena::fallback) {
    catena::fallback = &device_;
}
using_fallback::~using_fallback() { catena::fallback = before_; }

void seed(std::uint64_t value, Device device) {
    set_random_state(device, {seed_of(value, device.ordinal()), 0});
}

std::uint64_t initial_seed() {
    const char* text = std::getenv("CATENA_SEED");
    if (!text || !*text) return 0;
    const std::string_view digits = text;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
        raise<InvalidError>("[seed] CATENA_SEED: expected a number from 0 to 2^64 - 1, got '{}'",
                            digits);
    }
    return value;
}

RandomState random_state(Device device) {
    const DeviceState& state = state_of(device);
    return {state.random_seed, state.random_offset};
}

RandomState reserve_random(Device device, std::uint64_t n) {
    DeviceState& state = state_of(device);
    return {state.random_seed.load(std::memory_order_relaxed),
            state.random_offset.fetch_add(n, std::memory_order_relaxed)};
}

void set_random_state(Device device, RandomState to) {
    DeviceState& state = state_of(device);
    state.random_seed = to.seed;
    state.random_offset = to.offset;
}

// ---- streams: tickets, and the events behind them

constinit thread_local const using_stream* streams = nullptr;

Queue::Queue(DeviceState& of, catena_stream* stream, bool recorder)
    : device(of), native(stream), async(of.async()), own(*this, recorder) {}

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
    if (other.native == native && &other.device == &device) return;  // a recorder shares its stream
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
        on_backend(device, [&](catena_ctx* ctx) {
            return device.table.event_wait(ctx, device.dev, p.event, native);
        });
    }
    advance();
    const std::lock_guard lock(mutex_);
    std::uint64_t& known = seen_[&other];
    known = std::max(known, until);
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

}  // namespace catena
