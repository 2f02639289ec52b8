// What the environment says, read once where no other thread runs.
#pragma once

namespace catena_cuda {

struct Settings {
    char cublas[1024];  // CATENA_CUBLAS: path or name of the library; empty if unset
    char cudnn[1024];   // CATENA_CUDNN_LIBRARY
    char nvrtc[1024];   // CATENA_NVRTC
    bool tf32;          // CATENA_CUDA_TF32=1: products of float32 may round their inputs
};

// [load] false if a setting is too long.
bool read_settings();
const Settings& settings();

}  // namespace catena_cuda
