// Event: records events in the core's queues, waits for them and queries them.
#include <catena/event.hpp>

#include "device/device_state.hpp"

#include <catena/core/error.hpp>

#include <catena/fail.hpp>

#include <chrono>
#include <optional>

namespace catena {

struct Event::State {
    using Clock = std::chrono::steady_clock;

    explicit State(DeviceState& of) : device(of) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        if (native) device.table.event_destroy(device.dev, native);
    }

    template <class Call>
    void ask(const char* what, const Call& call) const {
        if (!device.events)
            fail<UnsupportedError>("[event] {}(): expected a backend that can say it, got {}", what,
                                   device.name);
        on_backend(device, [&](catena_ctx* ctx) { return call(ctx, *device.events); });
    }

    DeviceState& device;
    catena_event* native = nullptr;
    Queue* queue = nullptr;  // of the last record()
    std::uint64_t ticket = 0;
    std::optional<Clock::time_point> time;  // of the last record() on a synchronous device
};

const Event::State& Event::need() const {
    if (!state_) throw InvalidError("[event] expected an event, got an empty handle");
    return *state_;
}

Event::Event(Device device) : Event(device, nullptr) {
    DeviceState& state = state_->device;
    if (!state.async()) return;
    const auto timed = state.events ? state.events->timed_event_create : nullptr;
    const auto create = timed ? timed : state.table.event_create;
    on_backend(state, [&](catena_ctx* ctx) { return create(ctx, state.dev, &state_->native); });
}

Event::Event(Device device, catena_event* native)
    : state_(std::make_shared<State>(state_or_current(device))) {
    state_->native = native;
}

Device Event::device() const { return Device(&need().device); }
catena_event* Event::native() const { return need().native; }

void Event::record(const Stream& stream) const {
    need();
    Queue& queue = queue_of(stream);
    State& state = *state_;
    if (&queue.device != &state.device)
        fail<DeviceError>("[event] record(): expected a stream of {}, got one of {}",
                          state.device.name, queue.device.name);
    if (state.native) {
        if (queue.recording.load()) queue.refuse("an event");
        on_backend(state.device, [&](catena_ctx* ctx) {
            return state.device.table.event_record(ctx, state.device.dev, state.native,
                                                   queue.native);
        });
    } else {
        state.time = State::Clock::now();
    }
    state.queue = &queue;
    state.ticket = queue.now();
}

void Event::synchronize() const {
    const State& state = need();
    if (!state.native) return;
    DeviceState& device = state.device;
    if (device.events) {
        on_backend(device, [&](catena_ctx* ctx) {
            return device.events->event_sync(ctx, device.dev, state.native);
        });
    } else if (state.queue) {
        state.queue->finish(state.ticket);
    }
}

bool Event::done() const {
    const State& state = need();
    if (!state.native) return true;
    std::int32_t done = 0;
    state.ask("done", [&](catena_ctx* ctx, const catena_events& events) {
        return events.event_query(ctx, state.device.dev, state.native, &done);
    });
    return done != 0;
}

double Event::elapsed_since(const Event& begin) const {
    const State& a = begin.need();
    const State& b = need();
    if (&a.device != &b.device)
        fail<DeviceError>("[event] elapsed_since(): expected an event of {}, got {}", b.device.name,
                          a.device.name);
    if (!a.queue || !b.queue)
        throw InvalidError("[event] elapsed_since(): expected record() first, got none");
    if (!b.native) return std::chrono::duration<double, std::milli>(*b.time - *a.time).count();
    begin.synchronize();
    synchronize();
    double milliseconds = 0;
    b.ask("elapsed_since", [&](catena_ctx* ctx, const catena_events& events) {
        return events.elapsed(ctx, b.device.dev, a.native, b.native, &milliseconds);
    });
    return milliseconds;
}

void Event::hold_back(const Stream& stream) const {
    Queue& queue = queue_of(stream);
    const State& state = need();
    if (!state.native) return;
    if (!queue.async || &queue.device.table != &state.device.table) return synchronize();
    if (queue.recording.load()) queue.refuse("a wait for an event");
    queue.give([&](catena_ctx* ctx) {
        return queue.device.table.event_wait(ctx, queue.device.dev, state.native, queue.native);
    });
}

}  // namespace catena
