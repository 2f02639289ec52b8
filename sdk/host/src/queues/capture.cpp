// Capture: records work on a separate queue, and orders launches with other work.
#include <catena/capture.hpp>

#include "../support.hpp"

#include <catena/abi/ext/draft/graph.h>
#include <catena/abi/ext/draft/memory.h>
#include <catena/core/extend/context.hpp>
#include <catena/core/extend/order.hpp>
#include <catena/diagnostics/named_call.hpp>

#include <cstring>

namespace catena {

void write_bytes(const Array& array, const void* bytes) {
    ArrayBody& to = need_memory(array);
    const Device device = array.device();
    Queue& queue = recorded(*Stream::current(device).queue());
    const auto* const memory =
        static_cast<const catena_memory*>(backend_extension(device, CATENA_MEMORY_DRAFT_1));
    const std::uint64_t n = to.tensor.nbytes;
    const auto* const source = static_cast<const char*>(bytes);
    char* const target = static_cast<char*>(memory_of(to));
    written(to);
    if (!memory || !memory->fill) return copy_from_host(queue, to, bytes);
    before_write(to, queue);
    for (std::uint64_t at = 0, width = 0; at < n; at += width) {
        width = 16;  // then the largest power of two that fits the rest and divides the address
        while (width > n - at || reinterpret_cast<std::uintptr_t>(target + at) % width != 0)
            width /= 2;
        alignas(16) char element[16];
        std::memcpy(element, source + at, width);
        call_backend(device, device.name(), [&](catena_ctx* ctx, void* dev) {
            return memory->fill(ctx, dev, queue.native, target + at, element,
                                static_cast<std::uint32_t>(width), 1);
        });
        queue.advance();
    }
    after_write(to, queue, queue.last());
}

// Notes which arrays of others the recorded work uses, and which queues use the arrays that it makes.
class CaptureRecorder final : public Recorder {
public:
    using Recorder::Recorder;

    // Returns the recorder of the queue that was idle longest, if no array uses its memory, or a new one.
    static CaptureRecorder& take(Queue& queue) {
        for (;;) {
            CaptureRecorder* oldest = nullptr;
            std::uint64_t since = 0;
            for (Queue* made : queues_of(Device(&queue.device))) {
                auto* const idle = dynamic_cast<CaptureRecorder*>(made);
                if (!idle || idle->native != queue.native || idle->as_stream().memory().in_use != 0)
                    continue;
                const std::uint64_t turn = idle->idle_since_;
                if (turn == 0 || (oldest && turn > since)) continue;
                oldest = idle;
                since = turn;
            }
            if (!oldest) break;
            if (!oldest->idle_since_.compare_exchange_strong(since, 0)) continue;
            oldest->users_.clear();
            oldest->keep_free_memory(true);
            return *oldest;
        }
        return static_cast<CaptureRecorder&>(add_queue(std::make_unique<CaptureRecorder>(queue)));
    }
    void give_back() noexcept {
        static std::atomic<std::uint64_t> turns{0};
        keep_free_memory(false);
        idle_since_ = ++turns;
    }

    // Keeps an array alive that the work uses but did not make.
    struct Use {
        explicit Use(ArrayBody& owner) : array(Ref<ArrayBody>(&owner)) { ++owner.recordings; }
        Use(Use&&) = delete;
        ~Use() { --array.body()->recordings; }

        Array array;
        bool writes = false;
    };
    using Uses = std::map<ArrayBody*, Use>;
    void uses(ArrayBody& owner, bool writes) override {
        const std::lock_guard lock(mutex_);
        Use& use = uses_.try_emplace(&owner, owner).first->second;
        use.writes = use.writes || writes;
    }
    Uses take_uses() { return taken(uses_); }

    // Each launch reserves n blocks of the device's random numbers and writes their start to `state`.
    struct Draws {
        Array state;
        Device of;
        std::uint64_t n;
    };
    void draws(const Array& state, DeviceState& of, std::uint64_t n) override {
        const std::lock_guard lock(mutex_);
        draws_.push_back({state, Device(&of), n});
    }
    std::vector<Draws> take_draws() { return taken(draws_); }

    void used_by(Queue& other, bool writes) override {
        if (&other == this) return;
        const std::lock_guard lock(mutex_);
        bool& wrote = users_[&other];
        wrote = wrote || writes;
    }
    // A launch waits for queues that used its arrays; later work of those that wrote them waits for it.
    void after_users() {
        std::unique_lock lock(mutex_);
        const auto users = users_;
        std::erase_if(users_, [](const auto& user) { return !user.second; });
        lock.unlock();
        for (const auto& [user, writes] : users) after(*user, end);
    }
    void before_writers() {
        std::unique_lock lock(mutex_);
        const auto users = users_;
        lock.unlock();
        for (const auto& [user, writes] : users)
            if (writes) user->after(*this, end);
    }

private:
    template <class T>
    T taken(T& list) {
        const std::lock_guard lock(mutex_);
        return std::exchange(list, {});
    }

    std::atomic<std::uint64_t> idle_since_{0};  // 0: in use by a recording
    std::mutex mutex_;                          // of the members below
    std::map<Queue*, bool> users_;              // true: the queue writes
    Uses uses_;
    std::vector<Draws> draws_;
};

namespace {

// The backend's table for recordings, or null.
const catena_graph* graphs_of(Device device) {
    return static_cast<const catena_graph*>(backend_extension(device, CATENA_GRAPH_DRAFT_1));
}

}  // namespace

struct Capture::State {
    explicit State(const Stream& of)
        : stream(of),
          graphs(*graphs_of(of.device())),
          recorder(CaptureRecorder::take(*of.queue())) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        try {
            recorder.finish();
        } catch (...) {  // the device is lost
        }
        if (graph) graphs.destroy(backend_device(stream.device()), graph);
        // Attributes arrays of others to the stream, so that the recorder's next recording notes their use.
        for (auto& [owner, use] : uses) {
            Queue* last = &recorder;
            owner->queue.compare_exchange_strong(last, stream.queue());
        }
        recorder.give_back();
    }

    // Runs the body on the stream without recording it, in memory of the recorder.
    void warm_up(const std::function<void()>& body) {
        Queue& queue = *stream.queue();
        const OnExit restored{[&] { queue.pool = queue.own.get(); }};
        queue.pool = recorder.own.get();
        const using_stream scope(stream);
        body();
    }
    void record(const std::function<void()>& body, std::string_view its_name) {
        Queue& queue = *stream.queue();
        // The stream waits for all work submitted so far, so that the body can use arrays of other queues.
        for (Queue* other : queues_of(stream.device())) queue.after(*other, Queue::end);
        recorder.sees_as(queue);
        recorder.hold_memory();
        const OnExit recorded{[&] { recorder.release_memory(); }};
        void* const dev = backend_device(stream.device());
        call([&](catena_ctx* ctx) { return graphs.begin(ctx, dev, queue.native); });
        queue.recording = &recorder;
        recorder.recording = &recorder;
        const auto end = [&](catena_ctx* ctx) {
            queue.recording = nullptr;
            recorder.recording = nullptr;
            return graphs.end(ctx, dev, queue.native, &graph);
        };
        try {
            const using_stream scope(recorder.as_stream());
            body();
        } catch (...) {
            catena_ctx ctx;
            end(&ctx);
            uses = recorder.take_uses();
            throw;
        }
        call(end);
        if (!graph) fail<DeviceError>("[recording] {}: nothing was kept", stream.device().name());
        uses = recorder.take_uses();
        draws = recorder.take_draws();
        const std::uint64_t n = graphs.size(graph);
        name.emplace(its_name.empty()
                         ? fmt::format("recording of {}",
                                       n == 1 ? "1 kernel, copy or fill"
                                              : fmt::format("{} kernels, copies and fills", n))
                         : fmt::format("recording {}", its_name));
    }
    // Reserves random numbers for a launch: those that its calls would draw now.
    void draw() {
        const using_stream scope(recorder.as_stream());
        for (const auto& [state, of, n] : draws) {
            const RandomState begin = reserve_random(of, n);
            const std::uint64_t values[] = {begin.seed, begin.offset};
            write_bytes(state, values);
        }
    }
    void launch() {
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
            return graphs.launch(ctx, backend_device(stream.device()), graph, recorder.native);
        });
        recorder.advance();
        stream.queue()->advance();
        for (auto& [owner, use] : uses) {
            if (use.writes) after_write(*owner, recorder, Queue::end);
        }
        recorder.before_writers();
    }

    template <class Call>
    void call(const Call& of_table) {
        catena_ctx ctx;
        ctx.device = stream.device().state();
        catena_status status = of_table(&ctx);
        if (make_room(ctx, status)) status = of_table(&ctx);
        if (status != CATENA_OK) throw_failure(ctx, status, stream.device().name());
    }

    Stream stream;
    const catena_graph& graphs;
    CaptureRecorder& recorder;
    catena_graph_exec* graph = nullptr;
    CaptureRecorder::Uses uses;
    std::vector<CaptureRecorder::Draws> draws;
    std::optional<CallName> name;
    std::mutex mutex;  // one launch at a time
};

Capture::Capture(const Stream& stream, const std::function<void()>& body, int warm_ups,
                 std::string_view name) {
    if (!stream || !body) throw InvalidError("[capture] expected a stream and a body, got none");
    if (!supported(stream.device()))
        fail<UnsupportedError>("[capture] stream: expected one of a device that records, got {}",
                               stream.device().name());
    if (stream.queue()->recording.load())
        throw InvalidError("[capture] stream: expected one that is not recorded yet");
    state_ = std::make_shared<State>(stream);
    for (int i = 0; i < warm_ups; ++i) state_->warm_up(body);
    state_->record(body, name);
}

bool is_recorded(Device device) {
    return device && Stream::current(device).queue()->recording.load() != nullptr;
}

bool is_of_recording(const Array& array) { return array && is_recorded(*array.body()); }

bool Capture::supported(Device device) {
    return device && (backend_table(device).flags & CATENA_BACKEND_ASYNC) && graphs_of(device);
}

Capture::State& Capture::need() const {
    if (!state_) throw InvalidError("[capture] expected a recording, got an empty handle");
    return *state_;
}

void Capture::launch() const { need().launch(); }
std::uint64_t Capture::size() const { return need().graphs.size(need().graph); }
Stream Capture::stream() const { return need().stream; }

}  // namespace catena
