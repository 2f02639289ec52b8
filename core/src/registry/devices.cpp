// Device: the handle, scopes of the current and the fallback device, random states.
#include "registry/registry.hpp"

#include <limits.hpp>

#include <charconv>
#include <cstdlib>

namespace catena {
namespace {

thread_local DeviceState* current = nullptr;
thread_local const Device* fallback = nullptr;  // set by the innermost using_fallback scope

}  // namespace

DeviceState& state_of(Device device) {
    if (!device) raise<InvalidError>("[device] expected a device, got an empty handle");
    return *device.state();
}

DeviceState& state_or_current(Device device) {
    return *(device ? device : Device::current()).state();
}

const void* backend_extension(Device device, const char* id) {
    return state_of(device).extension(id);
}

void* backend_device(Device device) { return state_of(device).dev; }
const catena_backend& backend_table(Device device) { return state_of(device).table; }

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

void Device::synchronize() const {
    DeviceState& state = state_of(*this);
    const std::shared_lock waiting(state.waits);
    if (state.heap.recordings.load() > 0) state.main().refuse("a wait of the host");
    std::vector<std::pair<Queue*, std::uint64_t>> reached;
    for (Queue* queue : queues_of(*this)) reached.emplace_back(queue, queue->now());
    on_backend(state, [&](catena_ctx* ctx) { return state.table.sync(ctx, state.dev); });
    for (const auto& [queue, ticket] : reached) queue->known_done(ticket);
}

MemoryStats Device::memory() const {
    DeviceMemory& heap = state_of(*this).heap;
    const std::lock_guard lock(heap.mutex);
    MemoryStats stats = heap.stats;
    for (const CachingAllocator* pool : heap.pools) pool->free_lists(stats);
    return stats;
}

MemorySize Device::memory_size() const {
    DeviceState& state = state_of(*this);
    catena_ctx ctx;
    ctx.device = &state;
    std::uint64_t free = 0, total = 0;
    const auto ask = state.table.memory;
    if (!ask || ask(&ctx, state.dev, &free, &total) != CATENA_OK) return {};
    if (free > total || total > largest_memory) return {};  // the numbers are invalid
    return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

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

using_device::using_device(Device device) : using_value(catena::current, device.state()) {}

void use_device(Device device) { catena::current = device.state(); }

Device Device::fallback() {
    if (catena::fallback) return *catena::fallback;
    static const Device wish = [] {
        const char* name = std::getenv("CATENA_FALLBACK");
        return name && *name ? get(name) : Device();
    }();
    return wish;
}

using_fallback::using_fallback(Device device)
    : device_(device), scope_(catena::fallback, &device_) {}

// The device's seed depends on the ordinal, and is the same for all backends.
void seed(std::uint64_t value, Device device) {
    const auto ordinal = static_cast<std::uint64_t>(device.ordinal());
    set_random_state(device, {value ^ ordinal * 0x9e3779b97f4a7c15u, 0});
}

std::uint64_t initial_seed() {
    const char* text = std::getenv("CATENA_SEED");
    if (!text || !*text) return 0;
    const std::string_view digits = text;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    if (error != std::errc() || end != digits.end()) {
        raise<InvalidError>("[seed] CATENA_SEED: expected a number from 0 to 2^64 - 1, got '{}'",
                            digits);
    }
    return value;
}

RandomState random_state(Device device) {
    const DeviceState& state = state_of(device);
    return {state.random_seed, state.random_offset};
}

namespace {
thread_local constinit using_draws* draws = nullptr;
}

bool keeps_draws() noexcept { return draws; }
using_draws::using_draws(std::vector<RandomState>* states, bool again) noexcept
    : states_(states), again_(again), outer_(draws) {
    if (states) draws = this;
}
using_draws::~using_draws() { draws = outer_; }

RandomState using_draws::next(Device device, std::uint64_t n) {
    if (again_ && used_ == states_->size()) {
        raise<InvalidError>(
            "[recomputation] random numbers: expected {} draws as in the first call, got more",
            used_);
    }
    if (again_) return (*states_)[used_++];
    const using_value scope(draws, outer_);
    return states_->emplace_back(reserve_random(device, n));
}

RandomState reserve_random(Device device, std::uint64_t n) {
    if (draws) return draws->next(device, n);
    DeviceState& state = state_of(device);
    return {state.random_seed.load(std::memory_order_relaxed),
            state.random_offset.fetch_add(n, std::memory_order_relaxed)};
}

void set_random_state(Device device, RandomState to) {
    DeviceState& state = state_of(device);
    state.random_seed = to.seed;
    state.random_offset = to.offset;
}

}  // namespace catena
