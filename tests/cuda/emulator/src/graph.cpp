// Graphs. A capture records work in the order of its submission instead of running it; a launch
// runs the work of all captured streams one after the other.
#include "api.hpp"
#include "device.hpp"
#include "stream.hpp"

using namespace catena_emulator;

struct CUgraph_st {
    std::vector<Work> nodes;
    Live live = {};
};
struct CUgraphExec_st {
    std::shared_ptr<const std::vector<Work>> nodes;
    Live live = {};
};

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    if (handle == nullptr) return note(cudaErrorStreamCaptureUnsupported);
    if (stream->capture != nullptr) return note(cudaErrorStreamCaptureUnsupported);
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream.get();
    stream->capture->mode = mode;
    stream->capture->thread = std::this_thread::get_id();
    stream->capture->streams = {stream.get()};
    return cudaSuccess;
}

// The capture ends even if this fails.
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    *graph = nullptr;
    const cudaError_t error = enter();
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    const auto capture = stream->capture;
    if (capture == nullptr || capture->origin != stream.get())
        return note(cudaErrorStreamCaptureUnmatched);
    for (Stream* member : capture->streams) member->capture = nullptr;
    capture->origin = nullptr;  // ended: events recorded in it no longer count
    if (error != cudaSuccess) return error;
    if (capture->invalid) return note(cudaErrorStreamCaptureInvalidated);
    *graph = new CUgraph_st{std::move(capture->nodes)};
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
              : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* n) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (graph == nullptr || nodes != nullptr) return note(cudaErrorNotSupported);
    *n = graph->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (graph == nullptr) return note(cudaErrorInvalidValue);
    *exec = new CUgraphExec_st{std::make_shared<const std::vector<Work>>(graph->nodes)};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr || exec == nullptr) return note(cudaErrorInvalidResourceHandle);
    submit(*stream, [nodes = exec->nodes] {
        for (const Work& work : *nodes) {
            next_node();
            work();
        }
    });
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}
