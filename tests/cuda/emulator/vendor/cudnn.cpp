// Handles of cuDNN, and nothing that they would serve for.
#include <cuda_runtime.h>

#include "emulator/control.h"

#pragma GCC visibility push(default)
extern "C" {

struct cudnnContext {
    cudaStream_t stream = nullptr;
};

std::size_t cudnnGetVersion() { return 91300; }
const char* cudnnGetErrorString(int status) { return status == 0 ? "success" : "failure"; }
int cudnnCreate(cudnnContext** handle) {
    *handle = new cudnnContext;
    catena_emulator_live(1);
    return 0;
}
int cudnnDestroy(cudnnContext* handle) {
    delete handle;
    catena_emulator_live(-1);
    return 0;
}
int cudnnSetStream(cudnnContext* handle, cudaStream_t stream) {
    handle->stream = stream;
    return 0;
}
int cudnnGetStream(cudnnContext* handle, cudaStream_t* stream) {
    *stream = handle->stream;
    return 0;
}
}
#pragma GCC visibility pop
