// NVIDIA's libraries: opened when they are first asked for, their handles made for each stream and
// thread.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "catena/abi/ext/draft/vendor.h"

namespace catena_cuda {

// What the environment says, read once where no other thread runs.
struct Settings {
    char cublas[1024];  // CATENA_CUBLAS: path or name of the library; empty if unset
    char cudnn[1024];   // CATENA_CUDNN_LIBRARY
    char nvrtc[1024];   // CATENA_NVRTC
    bool tf32;          // CATENA_CUDA_TF32=1: products of float32 may round their inputs
};
bool read_settings();  // [load] false if a setting is too long
const Settings& settings();

extern const catena_vendor vendor_table;

// A library as dlopen() gave it. name: "cublas", "cudnn" or "nvrtc".
struct Library {
    void* dl = nullptr;
    std::int64_t version = 0;
    char error[512] = {};  // why dl is NULL
};

// [any] NULL if it is none of these. This and handle_of() throw std::bad_alloc.
const Library* library(const char* name);

// Whose a handle is: what others set in theirs does not reach the backend's own products.
enum class User { backend, others };
// [compute] The handle of a library for the stream, which is the device's, and the calling thread.
// Threads that ended leave theirs to later ones.
catena_status handle_of(catena_ctx* ctx, int device, cudaStream_t stream, const char* name,
                        User user, void** handle);

// The stream's handles end with it; its device is the current one.
void drop_handles(int device, cudaStream_t stream);

}  // namespace catena_cuda
