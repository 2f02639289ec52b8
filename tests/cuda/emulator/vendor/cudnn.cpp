// Handles of the cuDNN stand-in. Its graph API is in cudnn/.
#include "cudnn/cudnn.hpp"

#include "emulator/control.h"

extern "C" {

std::size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (status / 1000) {
        case 0: return "CUDNN_STATUS_SUCCESS";
        case 1: return "CUDNN_STATUS_NOT_INITIALIZED";
        case 2: return "CUDNN_STATUS_BAD_PARAM";
        case 3: return "CUDNN_STATUS_NOT_SUPPORTED";
        case 4: return "CUDNN_STATUS_INTERNAL_ERROR";
        default: return "CUDNN_STATUS_EXECUTION_FAILED";
    }
}
cudnnStatus_t cudnnCreate(cudnnContext** handle) {
    *handle = new cudnnContext;
    catena_emulator_live(1);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnContext* handle) {
    delete handle;
    catena_emulator_live(-1);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnContext* handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnContext* handle, cudaStream_t* stream) {
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}
}
