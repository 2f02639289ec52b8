// Recordings: a queue of their own for what is recorded, and the order of their launches.
#include <catena/capture.hpp>

#include "array/array_ops.hpp"
#include "array/recording.hpp"
#include "device/context.hpp"

#include <catena/core/error.hpp>
#include <catena/diagnostics/named_call.hpp>

#include <catena/fail.hpp>

#include <optional>

namespace catena {

struct Capture::State {
    explicit State(const Stream& of)
        : stream(of), device(of.queue()->device), recorder(device.take_recorder(*of.queue())) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        try {
            recorder.finish();
        } catch (...) {  // the device is lost
        }
        if (graph) device.graphs->destroy(device.dev, graph);
        // To who comes next on the recorder these are arrays of others, as they were to this one.
        for (auto& [owner, use] : uses) {
            Queue* last = &recorder;
            owner->queue.compare_exchange_strong(last, stream.queue());
        }
        device.give_back_recorder(recorder);
    }

    void warm_up(const std::function<void()>& body);
    void record(const std::function<void()>& body, std::string_view its_name);
    void draw();
    void launch();

    template <class Call>
    void call(const Call& of_table) {
        catena_ctx ctx;
        ctx.device = &device;
        catena_status status = of_table(&ctx);
        if (make_room(ctx, status)) status = of_table(&ctx);
        recorder.check(ctx, status);
    }

    Stream stream;
    DeviceState& device;
    Queue& recorder;
    catena_graph_exec* graph = nullptr;
    Recording::Uses uses;
    std::vector<Recording::Draws> draws;
    std::optional<CallName> name;
    std::mutex mutex;  // one launch at a time
};

// The stream's own work, in memory of the recording.
void Capture::State::warm_up(const std::function<void()>& body) {
    Queue& queue = *stream.queue();
    struct Pool {
        Queue& queue;
        ~Pool() { queue.pool = &queue.own; }
    } const restored{queue};
    queue.pool = &recorder.own;
    const using_stream scope(stream);
    body();
}

void Capture::State::record(const std::function<void()>& body, std::string_view its_name) {
    Queue& queue = *stream.queue();
    // The stream comes after all that was given by now, so that arrays of others can be used.
    device.order_after_all(queue);
    recorder.sees_as(queue);
    const struct Kept {
        DeviceState& device;
        explicit Kept(DeviceState& of) : device(of) { device.begin_recording(); }
        ~Kept() { device.end_recording(); }
    } kept(device);
    Recording recording(recorder);
    call([&](catena_ctx* ctx) { return device.graphs->begin(ctx, device.dev, queue.native); });
    queue.recording = &recording;
    recorder.recording = &recording;
    const auto end = [&](catena_ctx* ctx) {
        queue.recording = nullptr;
        recorder.recording = nullptr;
        return device.graphs->end(ctx, device.dev, queue.native, &graph);
    };
    try {
        const using_stream scope(recorder.as_stream());
        body();
    } catch (...) {
        catena_ctx ctx;
        end(&ctx);
        uses = recording.take();
        throw;
    }
    call(end);
    if (!graph) fail<DeviceError>("[recording] {}: nothing was kept", device.name);
    uses = recording.take();
    draws = recording.take_draws();
    const std::uint64_t n = device.graphs->size(graph);
    name.emplace(its_name.empty()
                     ? fmt::format("recording of {}",
                                   n == 1 ? "1 kernel, copy or fill"
                                          : fmt::format("{} kernels, copies and fills", n))
                     : fmt::format("recording {}", its_name));
}

// The numbers that the launch draws are those that its calls would draw now.
void Capture::State::draw() {
    const using_stream scope(recorder.as_stream());
    for (const auto& [state, of, n] : draws) {
        const RandomState begin = reserve_random(Device(&of), n);
        const std::uint64_t values[] = {begin.seed, begin.offset};
        write_bytes(state, values);
    }
}

void Capture::State::launch() {
    const std::lock_guard lock(mutex);
    for (auto& [owner, use] : uses) {
        if (!use.writes) {
            before_read(*owner, recorder);
            continue;
        }
        before_write(*owner, recorder);
        written(*owner);
    }
    draw();
    recorder.after_users();
    note_launch(recorder, *name);
    call([&](catena_ctx* ctx) {
        return device.graphs->launch(ctx, device.dev, graph, recorder.native);
    });
    recorder.advance();
    stream.queue()->advance();
    for (auto& [owner, use] : uses) {
        if (use.writes) after_write(*owner, recorder, Queue::end);
    }
    recorder.before_writers();
}

Capture::Capture(const Stream& stream, const std::function<void()>& body, int warm_ups,
                 std::string_view name) {
    if (!stream || !body) throw InvalidError("[capture] expected a stream and a body, got none");
    DeviceState& device = stream.queue()->device;
    if (!supported(stream.device()))
        fail<UnsupportedError>("[capture] stream: expected one of a device that records, got {}",
                               device.name);
    if (stream.queue()->recording.load())
        throw InvalidError("[capture] stream: expected one that is not recorded yet");
    state_ = std::make_shared<State>(stream);
    for (int i = 0; i < warm_ups; ++i) state_->warm_up(body);
    state_->record(body, name);
}

bool is_recorded(Device device) {
    return device && current_queue(*device.state()).recording.load() != nullptr;
}

bool is_of_recording(const Array& array) {
    if (!array) return false;
    const ArrayBody& owner = owner_of(*array.body());
    return owner.home && owner.home->recorded();
}

bool Capture::supported(Device device) {
    return device && device.state()->async() && device.state()->graphs;
}

Capture::State& Capture::need() const {
    if (!state_) throw InvalidError("[capture] expected a recording, got an empty handle");
    return *state_;
}

void Capture::launch() const { need().launch(); }
std::uint64_t Capture::size() const { return need().device.graphs->size(need().graph); }
Stream Capture::stream() const { return need().stream; }

}  // namespace catena
