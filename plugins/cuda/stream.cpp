// Streams, events and graphs. Streams do not synchronize with CUDA's stream 0. A capture restricts only the
// thread that records; other threads continue.
#include "backend.hpp"

#include <mutex>
#include <new>
#include <unordered_map>

struct catena_graph_exec {
    cudaGraphExec_t exec;
    uint64_t nodes;
};

namespace catena_cuda {
namespace {

// The device of each stream. Asking CUDA for it during a capture of the stream would break the capture.
struct Owners {
    std::mutex mutex;
    std::unordered_map<cudaStream_t, int> ordinal;
};
Owners& owners() {
    static auto& all = *new Owners;  // never destroyed: streams may outlive static objects
    return all;
}

// Returns 1 if the work is done; 0 if it is not, or if the call failed.
int32_t is_done(Scope& scope, cudaError_t error, const char* call) {
    if (error != cudaErrorNotReady) return scope.check(error, call) ? 1 : 0;
    static_cast<void>(cudaGetLastError());
    return 0;
}

catena_status stream_query(catena_ctx* ctx, void* dev, catena_stream* stream, int32_t* done) {
    Scope scope(ctx, "stream_query", dev);
    const BesideRecording beside(scope);
    *done = is_done(scope, cudaStreamQuery(cuda(stream)), "cudaStreamQuery");
    return scope.status();
}

catena_status event_query(catena_ctx* ctx, void* dev, catena_event* event, int32_t* done) {
    Scope scope(ctx, "event_query", dev);
    const BesideRecording beside(scope);
    *done = is_done(scope, cudaEventQuery(cuda(event)), "cudaEventQuery");
    return scope.status();
}

catena_status event_sync(catena_ctx* ctx, void* dev, catena_event* event) {
    Scope scope(ctx, "event_sync", dev);
    const BesideRecording beside(scope);
    return scope.end(cudaEventSynchronize(cuda(event)), "cudaEventSynchronize");
}

catena_status elapsed(catena_ctx* ctx, void* dev, catena_event* begin, catena_event* end,
                      double* milliseconds) {
    Scope scope(ctx, "elapsed", dev);
    float ms = 0;
    scope.check(cudaEventElapsedTime(&ms, cuda(begin), cuda(end)), "cudaEventElapsedTime");
    *milliseconds = static_cast<double>(ms);
    return scope.status();
}

catena_status graph_begin(catena_ctx* ctx, void* dev, catena_stream* stream) {
    return Scope(ctx, "graph begin", dev)
        .end(cudaStreamBeginCapture(cuda(stream), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
}

catena_status graph_end(catena_ctx* ctx, void* dev, catena_stream* stream,
                        catena_graph_exec** graph) {
    *graph = nullptr;
    Scope scope(ctx, "graph end", dev);
    cudaGraph_t recorded = nullptr;
    if (!scope.check(cudaStreamEndCapture(cuda(stream), &recorded), "cudaStreamEndCapture"))
        return scope.status();
    size_t nodes = 0;
    cudaGraphExec_t exec = nullptr;
    if (scope.check(cudaGraphGetNodes(recorded, nullptr, &nodes), "cudaGraphGetNodes"))
        scope.check(cudaGraphInstantiate(&exec, recorded, 0), "cudaGraphInstantiate");
    scope.check(cudaGraphDestroy(recorded), "cudaGraphDestroy");
    if (scope.ok()) *graph = new (std::nothrow) catena_graph_exec{exec, nodes};
    if (*graph != nullptr) return CATENA_OK;
    if (exec != nullptr) static_cast<void>(cudaGraphExecDestroy(exec));
    return scope.ok() ? fail(ctx, CATENA_E_NOMEM, "[cuda graph end] out of memory")
                      : scope.status();
}

catena_status graph_launch(catena_ctx* ctx, void* dev, catena_graph_exec* graph,
                           catena_stream* stream) {
    return Scope(ctx, "graph launch", dev)
        .end(cudaGraphLaunch(graph->exec, cuda(stream)), "cudaGraphLaunch");
}

void graph_destroy(void* dev, catena_graph_exec* graph) {
    if (graph == nullptr) return;
    Scope(nullptr, "graph destroy", dev)
        .check(cudaGraphExecDestroy(graph->exec), "cudaGraphExecDestroy");
    delete graph;
}

}  // namespace

catena_status make_event(catena_ctx* ctx, void* dev, unsigned flags, catena_event** event) {
    Scope scope(ctx, "event_create", dev);
    cudaEvent_t made = nullptr;
    if (scope.ok()) scope.check(cudaEventCreateWithFlags(&made, flags), "cudaEventCreateWithFlags");
    *event = reinterpret_cast<catena_event*>(made);
    return scope.status();
}

catena_status stream_create(catena_ctx* ctx, void* dev, catena_stream** stream) {
    Scope scope(ctx, "stream_create", dev);
    cudaStream_t made = nullptr;
    if (scope.ok())
        scope.check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking),
                    "cudaStreamCreateWithFlags");
    *stream = reinterpret_cast<catena_stream*>(made);
    if (made == nullptr) return scope.status();
    const catena_status status = guarded(ctx, "stream_create", [&] {
        const std::lock_guard lock(owners().mutex);
        owners().ordinal[made] = device_of(dev).ordinal;
    });
    if (status == CATENA_OK) return scope.status();
    static_cast<void>(cudaStreamDestroy(made));
    *stream = nullptr;
    return status;
}

void stream_destroy(void* dev, catena_stream* stream) {
    if (stream == nullptr) return;
    Scope scope(nullptr, "stream_destroy", dev);
    drop_handles(device_of(dev).ordinal, cuda(stream));
    {
        const std::lock_guard lock(owners().mutex);
        owners().ordinal.erase(cuda(stream));
    }
    scope.check(cudaStreamDestroy(cuda(stream)), "cudaStreamDestroy");
}

cudaError_t owner_of(cudaStream_t stream, int* ordinal) {
    {
        const std::lock_guard lock(owners().mutex);
        const auto known = owners().ordinal.find(stream);
        if (known != owners().ordinal.end()) {
            *ordinal = known->second;
            return cudaSuccess;
        }
    }
    return cudaStreamGetDevice(stream, ordinal);
}

catena_status stream_sync(catena_ctx* ctx, void* dev, catena_stream* stream) {
    Scope scope(ctx, "stream_sync", dev);
    const BesideRecording beside(scope);
    return scope.end(cudaStreamSynchronize(cuda(stream)), "cudaStreamSynchronize");
}

// Disables timing: a time stamp at each record would make waiting for the event slower.
catena_status event_create(catena_ctx* ctx, void* dev, catena_event** event) {
    return make_event(ctx, dev, cudaEventDisableTiming, event);
}

void event_destroy(void* dev, catena_event* event) {
    if (event != nullptr)
        Scope(nullptr, "event_destroy", dev)
            .check(cudaEventDestroy(cuda(event)), "cudaEventDestroy");
}

catena_status event_record(catena_ctx* ctx, void* dev, catena_event* event, catena_stream* stream) {
    return Scope(ctx, "event_record", dev)
        .end(cudaEventRecord(cuda(event), cuda(stream)), "cudaEventRecord");
}

catena_status event_wait(catena_ctx* ctx, void* dev, catena_event* event, catena_stream* stream) {
    return Scope(ctx, "event_wait", dev)
        .end(cudaStreamWaitEvent(cuda(stream), cuda(event), 0), "cudaStreamWaitEvent");
}

catena_status sync(catena_ctx* ctx, void* dev) {
    return Scope(ctx, "sync", dev).end(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

const catena_events events_table = {
    .struct_size = sizeof(catena_events),
    .reserved = 0,
    .stream_query = stream_query,
    .event_query = event_query,
    .event_sync = event_sync,
    .elapsed = elapsed,
    .timed_event_create =
        [](catena_ctx* ctx, void* dev, catena_event** event) {
            return make_event(ctx, dev, cudaEventDefault, event);
        },
};

const catena_graph graph_table = {
    .struct_size = sizeof(catena_graph),
    .reserved = 0,
    .begin = graph_begin,
    .end = graph_end,
    .launch = graph_launch,
    .destroy = graph_destroy,
    .size = [](const catena_graph_exec* graph) { return graph->nodes; },
};

}  // namespace catena_cuda
