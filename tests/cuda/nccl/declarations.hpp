// The declarations of nccl.h that catena uses. Other versions of the header must have them.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <type_traits>

namespace nccl_declarations {

template <class F, class Expected>
constexpr bool is = std::is_same_v<F*, Expected>;
using Result = ncclResult_t;
using Comm = ncclComm_t;
using Type = ncclDataType_t;
using Stream = cudaStream_t;

static_assert(ncclSuccess == 0 && ncclUnhandledCudaError == 1 && ncclInternalError == 3 &&
              ncclInvalidArgument == 4 && ncclInvalidUsage == 5 && ncclRemoteError == 6 &&
              ncclInProgress == 7);
static_assert(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4);
static_assert(ncclInt8 == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclUint32 == 3 &&
              ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclFloat32 == 7 &&
              ncclFloat64 == 8 && ncclBfloat16 == 9);
static_assert(sizeof(ncclUniqueId) == 128 && offsetof(ncclConfig_t, blocking) == 16);
static_assert(is<decltype(ncclGetVersion), Result (*)(int*)>);
static_assert(is<decltype(ncclGetErrorString), const char* (*)(Result)>);
static_assert(is<decltype(ncclGetLastError), const char* (*)(Comm)>);
static_assert(is<decltype(ncclGetUniqueId), Result (*)(ncclUniqueId*)>);
static_assert(
    is<decltype(ncclCommInitRankConfig), Result (*)(Comm*, int, ncclUniqueId, int, ncclConfig_t*)>);
static_assert(is<decltype(ncclCommGetAsyncError), Result (*)(Comm, Result*)>);
static_assert(is<decltype(ncclCommFinalize), Result (*)(Comm)>);
static_assert(is<decltype(ncclCommDestroy), Result (*)(Comm)>);
static_assert(is<decltype(ncclCommAbort), Result (*)(Comm)>);
static_assert(is<decltype(ncclGroupStart), Result (*)()>);
static_assert(is<decltype(ncclGroupEnd), Result (*)()>);
static_assert(is<decltype(ncclAllReduce),
                 Result (*)(const void*, void*, size_t, Type, ncclRedOp_t, Comm, Stream)>);
static_assert(is<decltype(ncclReduce),
                 Result (*)(const void*, void*, size_t, Type, ncclRedOp_t, int, Comm, Stream)>);
static_assert(
    is<decltype(ncclBroadcast), Result (*)(const void*, void*, size_t, Type, int, Comm, Stream)>);
static_assert(
    is<decltype(ncclAllGather), Result (*)(const void*, void*, size_t, Type, Comm, Stream)>);
static_assert(is<decltype(ncclReduceScatter),
                 Result (*)(const void*, void*, size_t, Type, ncclRedOp_t, Comm, Stream)>);
static_assert(is<decltype(ncclSend), Result (*)(const void*, size_t, Type, int, Comm, Stream)>);
static_assert(is<decltype(ncclRecv), Result (*)(void*, size_t, Type, int, Comm, Stream)>);

}  // namespace nccl_declarations
