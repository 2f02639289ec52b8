// What the files of the plugin provide to each other.
#pragma once

#include <string>

#include <catena/plugin/tables.hpp>

#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/compiled.h"
#include "catena/abi/ext/compiler.h"
#include "catena/abi/ext/threads.h"

namespace catena_cpu {

using catena::plugin::fail, catena::plugin::host;

// memory.cpp: as in catena_backend; the stream is NULL.
catena_status CATENA_CALL alloc(catena_ctx* ctx, void* dev, catena_stream* stream, uint64_t bytes,
                                void** data);
void CATENA_CALL release(void* dev, catena_stream* stream, void* data, uint64_t bytes);
catena_status CATENA_CALL copy(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                               const void* src, uint64_t bytes, int32_t direction);
catena_status CATENA_CALL memory(catena_ctx* ctx, void* dev, uint64_t* free_bytes,
                                 uint64_t* total_bytes);

// threads.cpp
extern const catena_threads threads_table;

// blas.cpp: products of OpenBLAS, divided among the threads of the pool.
extern const catena_blas blas_table;

// compiler.cpp: the system's C++ compiler, used at run time, and the levels of the x86-64 psABI.
extern const catena_compiler compiler_table;
extern const catena_targets targets_table;

// isa.cpp
// [any] Highest level of the x86-64 psABI that the CPU and the system support: 1 .. 4; 0 on other CPUs.
int isa_level();
// [any] Whether code for isa may run: "", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4".
bool supports_isa(const char* isa);
// [any] What `-march=native` depends on: the model, and all its features.
std::string cpu_signature();

}  // namespace catena_cpu
