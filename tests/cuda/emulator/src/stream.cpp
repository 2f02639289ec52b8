// Streams and events.
#include "stream.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "api.hpp"
#include "config.hpp"
#include "ipc.hpp"

namespace catena_emulator {

void EventState::complete(std::uint64_t generation) {
    {
        const std::lock_guard lock(mutex);
        completed = std::max(completed, generation);
        time = std::chrono::steady_clock::now();
    }
    if (shared != nullptr) shared_complete(*shared, generation);
    changed.notify_all();
}

void EventState::wait(std::uint64_t generation) {
    if (shared != nullptr) return shared_wait(*shared, generation);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return completed >= generation; });
}

bool EventState::done(std::uint64_t generation) {
    if (shared != nullptr) return shared_done(*shared, generation);
    const std::lock_guard lock(mutex);
    return completed >= generation;
}

void Stream::start() {
    std::thread([self = shared_from_this()] { self->run(); }).detach();
}

void Stream::run() {
    std::minstd_rand random(1);
    for (;;) {
        Work work;
        {
            std::unique_lock lock(mutex);
            changed.wait(lock, [this] { return !queue.empty() || closed; });
            if (queue.empty()) return;
            running() = std::move(queue.front().first);
            work = std::move(queue.front().second);
            queue.pop_front();
        }
        if (const int most = config().delay_us; most > 0)
            std::this_thread::sleep_for(
                std::chrono::microseconds(random() % static_cast<unsigned>(most)));
        work();
        work = nullptr;
        {
            const std::lock_guard lock(mutex);
            ++completed;
        }
        changed.notify_all();
    }
}

void Stream::push(Work work, Operation operation) {
    {
        const std::lock_guard lock(mutex);
        queue.emplace_back(std::move(operation), std::move(work));
        ++submitted;
    }
    changed.notify_all();
}

void Stream::wait_for(std::uint64_t n) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return completed >= n; });
}

void Stream::drain() {
    std::unique_lock lock(mutex);
    const std::uint64_t n = submitted;
    changed.wait(lock, [&] { return completed >= n; });
}

bool Stream::idle() {
    const std::lock_guard lock(mutex);
    return completed == submitted;
}

std::shared_ptr<Stream> make_stream(Device& device, bool blocking) {
    static std::atomic<std::size_t> streams = 0;
    auto stream = std::make_shared<Stream>();
    stream->index = streams++;
    stream->device = &device;
    stream->blocking = blocking;
    stream->start();
    return stream;
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle) {
    if (handle == nullptr) {
        Device& device = current_device();
        if (device.legacy == nullptr) device.legacy = make_stream(device, false);
        return device.legacy;
    }
    for (const auto& device : devices())
        for (const auto& stream : device->streams)
            if (stream.get() == reinterpret_cast<Stream*>(handle)) return stream;
    return nullptr;
}

void submit(Stream& stream, Work work) {
    if (stream.capture != nullptr) {
        stream.capture->nodes.push_back(std::move(work));
        return;
    }
    // Stream 0 and streams that are not "non-blocking" wait for each other.
    const auto after = [&](const std::shared_ptr<Stream>& other) {
        merge(stream.clock, other->clock);
        std::uint64_t n = 0;
        {
            const std::lock_guard lock(other->mutex);
            n = other->submitted;
            if (other->completed == n) return;
        }
        stream.push([other, n] { other->wait_for(n); });
    };
    Device& device = *stream.device;
    if (&stream == device.legacy.get()) {
        for (const auto& other : device.streams)
            if (other->blocking) after(other);
    } else if (stream.blocking && device.legacy != nullptr) {
        after(device.legacy);
    }
    Operation operation = next_operation(stream);
    stream.push(std::move(work), std::move(operation));
}

namespace {
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

// Whether a call that may wait, in this thread's capture mode, invalidates the capture.
bool breaks(const Capture& capture) {
    if (capture.mode == cudaStreamCaptureModeRelaxed ||
        capture_mode == cudaStreamCaptureModeRelaxed)
        return false;
    if (capture.thread == std::this_thread::get_id()) return true;
    return capture.mode == cudaStreamCaptureModeGlobal &&
           capture_mode == cudaStreamCaptureModeGlobal;
}
}  // namespace

bool capture_forbids() {
    for (const auto& device : devices())
        for (const auto& stream : device->streams)
            if (stream->capture != nullptr && breaks(*stream->capture)) {
                stream->capture->invalid = true;
                return true;
            }
    return false;
}

}  // namespace catena_emulator

using namespace catena_emulator;

// As in CUDA, this creates a context.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    std::swap(*mode, capture_mode);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    Device& device = current_device();
    auto made = make_stream(device, flags != cudaStreamNonBlocking);
    *stream = reinterpret_cast<cudaStream_t>(made.get());
    catena_emulator_live(1);
    device.streams.insert(std::move(made));
    return cudaSuccess;
}

// Work that is already queued still runs.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    if (const cudaError_t error = enter_to_free(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = handle == nullptr ? nullptr : find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    stream->device->streams.erase(stream);
    catena_emulator_live(-1);
    {
        const std::lock_guard inner(stream->mutex);
        stream->closed = true;
    }
    stream->changed.notify_all();
    return cudaSuccess;
}

namespace {

// Finds a stream that the host may wait for, and what it then knows to be over.
cudaError_t find_waitable(cudaStream_t handle, std::shared_ptr<Stream>* stream, Clock* clock) {
    const std::lock_guard lock(api());
    *stream = find_stream(handle);
    if (*stream == nullptr) return cudaErrorInvalidResourceHandle;
    if ((*stream)->capture == nullptr) {
        *clock = (*stream)->clock;
        return cudaSuccess;
    }
    (*stream)->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
}

}  // namespace

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    std::shared_ptr<Stream> stream;
    Clock clock;
    if (const cudaError_t error = find_waitable(handle, &stream, &clock); error != cudaSuccess)
        return note(error);
    stream->drain();
    host_waited(clock);
    return note(fault_of(*stream->device));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    std::shared_ptr<Stream> stream;
    Clock clock;
    if (const cudaError_t error = find_waitable(handle, &stream, &clock); error != cudaSuccess)
        return note(error);
    {
        const std::lock_guard lock(api());
        if (capture_forbids()) return note(cudaErrorStreamCaptureUnsupported);
    }
    if (!stream->idle()) return note(cudaErrorNotReady);
    host_waited(clock);
    return note(fault_of(*stream->device));
}

cudaError_t cudaDeviceSynchronize() {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    std::vector<std::shared_ptr<Stream>> streams;
    Device& device = current_device();
    Clock clock;
    {
        const std::lock_guard lock(api());
        bool recorded = false;  // by any thread and in any mode
        for (const auto& stream : device.streams)
            if (stream->capture != nullptr) recorded = stream->capture->invalid = true;
        if (recorded) return note(cudaErrorStreamCaptureUnsupported);
        streams.assign(device.streams.begin(), device.streams.end());
        if (device.legacy != nullptr) streams.push_back(device.legacy);
        for (const auto& stream : streams) merge(clock, stream->clock);
    }
    for (const auto& stream : streams) stream->drain();
    host_waited(clock);
    return note(fault_of(device));
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    if (stream->capture != nullptr) {
        stream->capture->invalid = true;
        return note(cudaErrorStreamCaptureUnsupported);
    }
    *device = stream->device->ordinal;
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t fn, void* user) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    submit(*stream, [fn, user] { fn(user); });
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if ((flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0)
        return note(cudaErrorInvalidValue);
    auto state = std::make_shared<EventState>();
    if ((flags & cudaEventInterprocess) != 0) state->shared = make_shared_event();
    *event = new CUevent_st{std::move(state), flags, current_ordinal(), nullptr};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (const cudaError_t error = enter_to_free(); error != cudaSuccess) return error;
    if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr || event == nullptr || stream->device->ordinal != event->device)
        return note(cudaErrorInvalidResourceHandle);
    event->capture = stream->capture;
    if (stream->capture != nullptr) return cudaSuccess;  // the graph's order implies it
    const std::uint64_t generation = event->state->shared != nullptr
                                         ? shared_record(*event->state->shared)
                                         : ++event->state->recorded;
    submit(*stream, [state = event->state, generation] { state->complete(generation); });
    event->state->clock = stream->clock;
    return cudaSuccess;
}

namespace {

std::uint64_t recorded(const CUevent_st& event) {
    return event.state->shared != nullptr ? shared_recorded(*event.state->shared)
                                          : event.state->recorded;
}

}  // namespace

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr || event == nullptr) return note(cudaErrorInvalidResourceHandle);
    if (event->capture != nullptr && event->capture->origin != nullptr) {
        if (stream->capture == event->capture) return cudaSuccess;
        if (stream->capture != nullptr || stream->device->legacy == stream)
            return note(cudaErrorCapturedEvent);
        stream->capture = event->capture;  // a fork: this stream is captured as well
        stream->capture->streams.push_back(stream.get());
        return cudaSuccess;
    }
    const std::uint64_t generation = recorded(*event);
    merge(stream->clock, event->state->clock);
    if (generation == 0 || event->state->done(generation)) return cudaSuccess;
    submit(*stream, [state = event->state, generation] { state->wait(generation); });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
    std::uint64_t generation = 0;
    Clock clock;
    {
        const std::lock_guard lock(api());
        if (event->capture != nullptr && event->capture->origin != nullptr)
            return note(cudaErrorCapturedEvent);
        generation = recorded(*event);
        clock = event->state->clock;
    }
    event->state->wait(generation);
    host_waited(clock);
    return note(fault_of(*devices()[static_cast<std::size_t>(event->device)]));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
    const std::lock_guard lock(api());
    if (event->capture != nullptr && event->capture->origin != nullptr)
        return note(cudaErrorCapturedEvent);
    if (capture_forbids()) return note(cudaErrorStreamCaptureUnsupported);
    if (!event->state->done(recorded(*event))) return note(cudaErrorNotReady);
    merge(host_clock(), event->state->clock);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (begin == nullptr || end == nullptr || begin->device != end->device ||
        ((begin->flags | end->flags) & cudaEventDisableTiming) != 0)
        return note(cudaErrorInvalidResourceHandle);
    const std::lock_guard lock(api());
    if (begin->state->recorded == 0 || end->state->recorded == 0)
        return note(cudaErrorInvalidResourceHandle);
    if (!begin->state->done(begin->state->recorded) || !end->state->done(end->state->recorded))
        return note(cudaErrorNotReady);
    const std::scoped_lock both(begin->state->mutex, end->state->mutex);
    *milliseconds =
        std::chrono::duration<float, std::milli>(end->state->time - begin->state->time).count();
    return cudaSuccess;
}
