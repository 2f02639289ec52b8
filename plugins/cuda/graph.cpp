// CUDA's stream capture. It forbids to this thread alone what cannot be recorded: others work on.
#include "backend.hpp"

#include <new>

struct catena_graph_exec {
    cudaGraphExec_t exec;
    uint64_t nodes;
};

namespace catena_cuda {
namespace {

catena_status begin(catena_ctx* ctx, void* dev, catena_stream* stream) {
    Scope scope(ctx, "graph begin", dev);
    scope.check(cudaStreamBeginCapture(cuda(stream), cudaStreamCaptureModeThreadLocal),
                "cudaStreamBeginCapture");
    return scope.status();
}

catena_status end(catena_ctx* ctx, void* dev, catena_stream* stream, catena_graph_exec** graph) {
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

catena_status launch(catena_ctx* ctx, void* dev, catena_graph_exec* graph, catena_stream* stream) {
    Scope scope(ctx, "graph launch", dev);
    scope.check(cudaGraphLaunch(graph->exec, cuda(stream)), "cudaGraphLaunch");
    return scope.status();
}

void destroy(void* dev, catena_graph_exec* graph) {
    if (graph == nullptr) return;
    Scope scope(nullptr, "graph destroy", dev);
    scope.check(cudaGraphExecDestroy(graph->exec), "cudaGraphExecDestroy");
    delete graph;
}

}  // namespace

const catena_graph graph_table = {
    .struct_size = sizeof(catena_graph),
    .reserved = 0,
    .begin = begin,
    .end = end,
    .launch = launch,
    .destroy = destroy,
    .size = [](const catena_graph_exec* graph) { return graph->nodes; },
};

}  // namespace catena_cuda
