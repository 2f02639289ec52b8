// What kernels share that are one call of cuDNN: its descriptors, and the way to that call. They run
// for those alone who pin them.
#pragma once

#include <climits>

#include <catena/plugin/cuda/launch.cuh>

#include "kernels.hpp"

namespace catena_cudnn {

// (n, c, h, w) of a packed tensor.
struct Image {
    std::int64_t n, c, h, w;
    std::int64_t size() const { return times(times(n, c), times(h, w)); }
    // Nothing that is empty, and nothing that 32 bits do not count.
    bool fits() const { return n > 0 && c > 0 && h > 0 && w > 0 && size() <= INT_MAX; }
};
// A tensor (N, C, ...) with all that follows the channels in h.
inline Image channels_of(const catena_tensor& t) {
    const Shape shape = shape_of(t);
    if (shape.size() < 2) return {};
    return {shape[0], shape[1], size_of(shape.subspan(2)), 1};
}

inline cudnnDataType_t type_of(const catena_tensor& t) {
    if (t.dl.dtype.code == CATENA_CODE_BFLOAT) return CUDNN_DATA_BFLOAT16;
    return t.dl.dtype.bits == 64   ? CUDNN_DATA_DOUBLE
           : t.dl.dtype.bits == 32 ? CUDNN_DATA_FLOAT
                                   : CUDNN_DATA_HALF;
}

// 1, 0, and either by request: numbers as cuDNN reads them, doubles for doubles.
class Factors {
public:
    explicit Factors(const catena_tensor& t) : wide_(type_of(t) == CUDNN_DATA_DOUBLE) {}
    const void* one() const { return wide_ ? static_cast<const void*>(&one_) : &narrow_one_; }
    const void* zero() const { return wide_ ? static_cast<const void*>(&zero_) : &narrow_zero_; }
    const void* add(bool add) const { return add ? one() : zero(); }

private:
    bool wide_;
    double one_ = 1, zero_ = 0;
    float narrow_one_ = 1, narrow_zero_ = 0;
};

// What a call works with. Throws.
class Session {
public:
    Session(catena_ctx* ctx, const catena_call& call)
        : device_(call.function->name, call.device_id),
          library_(*library(ctx)),
          cudnn(*operations(ctx)),
          handle(handle_of(ctx, call)) {}
    void check(const char* call, cudnnStatus_t status) const {
        catena_cudnn::check(library_, call, status);
    }

private:
    cuda::OnDevice device_;
    const Library& library_;

public:
    const Operations& cudnn;
    const cudnnHandle_t handle;
};

// A descriptor of one of three kinds.
template <class Raw, auto create, auto destroy>
class Handle {
public:
    explicit Handle(const Session& s) : cudnn_(s.cudnn) {
        s.check("create a descriptor", (cudnn_.*create)(&raw));
    }
    ~Handle() { static_cast<void>((cudnn_.*destroy)(raw)); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    Raw raw = nullptr;

private:
    const Operations& cudnn_;
};
using PoolingHandle =
    Handle<cudnnPoolingDescriptor_t, &Operations::create_pooling, &Operations::destroy_pooling>;
using LrnHandle = Handle<cudnnLRNDescriptor_t, &Operations::create_lrn, &Operations::destroy_lrn>;

class TensorHandle : public Handle<cudnnTensorDescriptor_t, &Operations::create_tensor,
                                   &Operations::destroy_tensor> {
public:
    TensorHandle(const Session& s, cudnnDataType_t type, const Image& t) : Handle(s) {
        s.check("cudnnSetTensor4dDescriptor",
                s.cudnn.set_tensor(raw, CUDNN_TENSOR_NCHW, type, static_cast<int>(t.n),
                                   static_cast<int>(t.c), static_cast<int>(t.h),
                                   static_cast<int>(t.w)));
    }
};

inline void* data(const catena_tensor* t) { return t == nullptr ? nullptr : data_of<char>(*t); }

// The kernels of one file: whether a call is for it, what run() takes, and that.
template <bool (*fits)(const catena_call&)>
std::int32_t supports_operation(catena_ctx* ctx, const catena_call* call) noexcept {
    try {
        return wanted(ctx) && operations(ctx) != nullptr && fits(*call) ? 1 : 0;
    } catch (const std::exception&) {
        return 0;
    }
}
template <void (*body)(const Session&, const catena_call&)>
catena_status run_operation(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] { body(Session(ctx, *call), *call); });
}
template <std::uint64_t (*bytes)(const catena_call&)>
catena_status plan_operation(catena_ctx* ctx, const catena_call* call, catena_plan* plan) noexcept {
    return guarded(ctx, [&] { plan->scratch_bytes = bytes(*call); });
}

// Kernels for both phases of a function that are pinned.
template <bool (*fits)(const catena_call&), void (*forward)(const Session&, const catena_call&),
          bool (*fits_back)(const catena_call&),
          void (*backward)(const Session&, const catena_call&)>
void append_operation(std::vector<catena_kernel>& all, const char* name, const catena_dtype* types,
                      decltype(catena_kernel::plan) plan = nullptr) {
    all.push_back(kernel(name, CATENA_PHASE_FORWARD, types, Rank::pinned, supports_operation<fits>,
                         nullptr, run_operation<forward>));
    all.push_back(kernel(name, CATENA_PHASE_BACKWARD, types, Rank::pinned,
                         supports_operation<fits_back>, plan, run_operation<backward>));
}

}  // namespace catena_cudnn
