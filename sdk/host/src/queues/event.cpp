// Event: records events in the core's queues, waits for them and queries them.
#include <catena/event.hpp>

#include <catena/core/extend/order.hpp>

#include <catena/abi/ext/draft/events.h>
#include <catena/fail.hpp>

#include <chrono>
#include <optional>

namespace catena {

struct Event::State {
    using Clock = std::chrono::steady_clock;

    explicit State(Device of)
        : device(of),
          table(backend_table(of)),
          events(static_cast<const catena_events*>(backend_extension(of, CATENA_EVENTS_DRAFT_1))) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        if (native) table.event_destroy(backend_device(device), native);
    }

    // call(ctx, dev): a call of the backend, of its table for events.
    template <class Call>
    void ask(const char* what, const Call& call) const {
        if (!events)
            fail<UnsupportedError>("[event] {}(): expected a backend that can say it, got {}", what,
                                   device.name());
        call_backend(device, device.name(), call);
    }

    const Device device;
    const catena_backend& table;
    const catena_events* const events;
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
    State& state = *state_;
    if (!(state.table.flags & CATENA_BACKEND_ASYNC)) return;
    const auto timed = state.events ? state.events->timed_event_create : nullptr;
    const auto create = timed ? timed : state.table.event_create;
    call_backend(state.device, state.device.name(),
                 [&](catena_ctx* ctx, void* dev) { return create(ctx, dev, &state.native); });
}

Event::Event(Device device, catena_event* native)
    : state_(std::make_shared<State>(device ? device : Device::current())) {
    state_->native = native;
}

Device Event::device() const { return need().device; }
catena_event* Event::native() const { return need().native; }

void Event::record(const Stream& stream) const {
    need();
    Queue& queue = queue_of(stream);
    State& state = *state_;
    if (stream.device() != state.device)
        fail<DeviceError>("[event] record(): expected a stream of {}, got one of {}",
                          state.device.name(), stream.device().name());
    if (state.native) {
        if (queue.recording.load()) queue.refuse("an event");
        call_backend(state.device, state.device.name(), [&](catena_ctx* ctx, void* dev) {
            return state.table.event_record(ctx, dev, state.native, queue.native);
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
    if (state.events) {
        state.ask("synchronize", [&](catena_ctx* ctx, void* dev) {
            return state.events->event_sync(ctx, dev, state.native);
        });
    } else if (state.queue) {
        state.queue->finish(state.ticket);
    }
}

bool Event::done() const {
    const State& state = need();
    if (!state.native) return true;
    std::int32_t done = 0;
    state.ask("done", [&](catena_ctx* ctx, void* dev) {
        return state.events->event_query(ctx, dev, state.native, &done);
    });
    return done != 0;
}

double Event::elapsed_since(const Event& begin) const {
    const State& a = begin.need();
    const State& b = need();
    if (a.device != b.device)
        fail<DeviceError>("[event] elapsed_since(): expected an event of {}, got {}",
                          b.device.name(), a.device.name());
    if (!a.queue || !b.queue)
        throw InvalidError("[event] elapsed_since(): expected record() first, got none");
    if (!b.native) return std::chrono::duration<double, std::milli>(*b.time - *a.time).count();
    begin.synchronize();
    synchronize();
    double milliseconds = 0;
    b.ask("elapsed_since", [&](catena_ctx* ctx, void* dev) {
        return b.events->elapsed(ctx, dev, a.native, b.native, &milliseconds);
    });
    return milliseconds;
}

void Event::hold_back(const Stream& stream) const {
    Queue& queue = queue_of(stream);
    const State& state = need();
    if (!state.native) return;
    if (!queue.async || &backend_table(stream.device()) != &state.table) return synchronize();
    if (queue.recording.load()) queue.refuse("a wait for an event");
    call_backend(stream.device(), stream.device().name(), [&](catena_ctx* ctx, void* dev) {
        return state.table.event_wait(ctx, dev, state.native, queue.native);
    });
    queue.advance();
}

}  // namespace catena
