// NVIDIA's libraries: opened when they are first asked for, their handles made for each stream and
// thread.
#pragma once

#include <string>

#include "backend.hpp"
#include "catena/abi/ext/draft/vendor.h"

namespace catena_cuda {

// What the environment says, read where no other thread runs. Paths or names of the libraries; empty if
// unset.
struct Settings {
    std::string cublas;  // CATENA_CUBLAS
    std::string cudnn;   // CATENA_CUDNN_LIBRARY
    std::string nvrtc;   // CATENA_NVRTC
    bool tf32 = false;   // CATENA_CUDA_TF32=1: products of float32 may round their inputs
};
const Settings& settings();

extern const catena_vendor vendor_table;

// A library as dlopen() gave it. name: "cublas", "cudnn" or "nvrtc".
struct Library {
    void* dl = nullptr;
    std::int64_t version = 0;
    std::string error;  // why dl is NULL
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
