// Pooling, softmax and normalisation, by the plainest loops: one emulated thread for each element of
// the result, or for each channel.
#include <cmath>

#include "cudnn.hpp"
#include "load.hpp"

// Without padding, for they go into closures, where launches look for addresses.
struct cudnnTensorStruct {
    std::int64_t type = CUDNN_DATA_FLOAT;
    std::int64_t n = 0, c = 0, h = 0, w = 0;

    std::int64_t size() const { return n * c * h * w; }
    bool operator==(const cudnnTensorStruct&) const = default;
};
struct cudnnPoolingStruct {
    std::int64_t set = 0;
    std::int64_t height = 0, width = 0, pad_y = 0, pad_x = 0, stride_y = 0, stride_x = 0;
};
struct cudnnLRNStruct {
    std::int64_t n = 0;
    double alpha = 0, beta = 0, k = 0;
};

namespace stand_in {
namespace {

constexpr cudnnStatus_t ok = CUDNN_STATUS_SUCCESS;
constexpr cudnnStatus_t bad = CUDNN_STATUS_BAD_PARAM;

// A closure as bytes: launches want types whose padding can be cleared.
template <class Body>
struct Packed {
    alignas(8) unsigned char bytes[sizeof(Body)];
};
template <class Body>
__global__ void each(Packed<Body> body, std::int64_t n) {
    const std::int64_t i =
        static_cast<std::int64_t>(blockIdx.x) * blockDim.x + static_cast<std::int64_t>(threadIdx.x);
    if (i < n) reinterpret_cast<const Body&>(body.bytes)(i);
}
template <class Body>
cudnnStatus_t launch(cudnnHandle_t handle, std::int64_t n, const Body& body) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((n + 127) / 128));
    config.blockDim = dim3(128);
    config.stream = handle->stream;
    Packed<Body> packed;
    std::memcpy(packed.bytes, static_cast<const void*>(&body), sizeof body);
    return cudaLaunchKernelEx(&config, each<Body>, packed, n) == cudaSuccess
               ? ok
               : CUDNN_STATUS_EXECUTION_FAILED;
}

// body(T*, scalar type) of the tensor's dtype.
template <class Body>
cudnnStatus_t with(const cudnnTensorStruct& t, const Body& body) {
    switch (t.type) {
        case CUDNN_DATA_FLOAT: return body(static_cast<float*>(nullptr), float());
        case CUDNN_DATA_DOUBLE: return body(static_cast<double*>(nullptr), double());
        case CUDNN_DATA_HALF: return body(static_cast<Float16*>(nullptr), float());
        case CUDNN_DATA_BFLOAT16: return body(static_cast<BFloat16*>(nullptr), float());
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
}
template <class C>
double scalar(const void* value) {
    return static_cast<double>(*static_cast<const C*>(value));
}

// place = alpha * value + beta * what is there.
template <class T>
void blend(T* place, double alpha, double beta, double value) {
    const double before = beta == 0 ? 0 : beta * static_cast<double>(load(*place));
    store(place, static_cast<decltype(load(*place))>(alpha * value + before));
}

bool fits(const cudnnPoolingStruct& p, const cudnnTensorStruct& x, const cudnnTensorStruct& y) {
    return p.set != 0 && x.type == y.type && x.n == y.n && x.c == y.c &&
           y.h == (x.h + 2 * p.pad_y - p.height) / p.stride_y + 1 &&
           y.w == (x.w + 2 * p.pad_x - p.width) / p.stride_x + 1;
}

// Values of each line along c.
template <class T, class Body>
double sum(const T* line, std::int64_t n, std::int64_t step, const Body& body) {
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i)
        total += body(static_cast<double>(load(line[i * step])), i);
    return total;
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
    *tensor = new cudnnTensorStruct;
    change(&CudnnCounts::descriptors, 1);
    return ok;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    if (n < 1 || c < 1 || h < 1 || w < 1) return bad;
    *tensor = {type, n, c, h, w};
    return ok;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
    delete tensor;
    change(&CudnnCounts::descriptors, -1);
    return ok;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* pooling) {
    *pooling = new cudnnPoolingStruct;
    change(&CudnnCounts::descriptors, 1);
    return ok;
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t, int height, int width, int pad_y,
                                          int pad_x, int stride_y, int stride_x) {
    if (height < 1 || width < 1 || pad_y < 0 || pad_x < 0 || stride_y < 1 || stride_x < 1)
        return bad;
    if (mode != CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING || pad_y >= height || pad_x >= width)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *pooling = {1, height, width, pad_y, pad_x, stride_y, stride_x};
    return ok;
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t pooling) {
    delete pooling;
    change(&CudnnCounts::descriptors, -1);
    return ok;
}
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                  const void* alpha, cudnnTensorDescriptor_t x_type, const void* x,
                                  const void* beta, cudnnTensorDescriptor_t y_type, void* y) {
    if (!fits(*pooling, *x_type, *y_type)) return bad;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        return launch(
            handle, y_type->size(),
            [p = *pooling, in = *x_type, out = *y_type, a = scalar<C>(alpha), b = scalar<C>(beta),
             from = static_cast<const T*>(x), to = static_cast<T*>(y)](std::int64_t at) {
                const std::int64_t j = at % out.w, i = at / out.w % out.h;
                const T* const plane = from + at / out.w / out.h * in.h * in.w;
                double total = 0;
                for (std::int64_t u = 0; u < p.height; ++u)
                    for (std::int64_t v = 0; v < p.width; ++v) {
                        const std::int64_t r = i * p.stride_y - p.pad_y + u;
                        const std::int64_t s = j * p.stride_x - p.pad_x + v;
                        if (r >= 0 && r < in.h && s >= 0 && s < in.w)
                            total += static_cast<double>(load(plane[r * in.w + s]));
                    }
                blend(to + at, a, b, total / static_cast<double>(p.height * p.width));
            });
    });
}
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                   const void* alpha, cudnnTensorDescriptor_t y_type, const void* y,
                                   cudnnTensorDescriptor_t dy_type, const void* dy,
                                   cudnnTensorDescriptor_t x_type, const void* x, const void* beta,
                                   cudnnTensorDescriptor_t dx_type, void* dx) {
    if (y == nullptr || x == nullptr || *y_type != *dy_type || *x_type != *dx_type ||
        !fits(*pooling, *x_type, *y_type))
        return bad;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        return launch(
            handle, x_type->size(),
            [p = *pooling, in = *x_type, out = *y_type, a = scalar<C>(alpha), b = scalar<C>(beta),
             from = static_cast<const T*>(dy), to = static_cast<T*>(dx)](std::int64_t at) {
                const std::int64_t s = at % in.w, r = at / in.w % in.h;
                const T* const plane = from + at / in.w / in.h * out.h * out.w;
                double total = 0;
                for (std::int64_t i = 0; i < out.h; ++i)
                    for (std::int64_t j = 0; j < out.w; ++j) {
                        const std::int64_t u = r - i * p.stride_y + p.pad_y;
                        const std::int64_t v = s - j * p.stride_x + p.pad_x;
                        if (u >= 0 && u < p.height && v >= 0 && v < p.width)
                            total += static_cast<double>(load(plane[i * out.w + j]));
                    }
                blend(to + at, a, b, total / static_cast<double>(p.height * p.width));
            });
    });
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  cudnnTensorDescriptor_t x_type, const void* x, const void* beta,
                                  cudnnTensorDescriptor_t y_type, void* y) {
    if (*x_type != *y_type) return bad;
    if (algorithm != CUDNN_SOFTMAX_ACCURATE || mode != CUDNN_SOFTMAX_MODE_CHANNEL)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        const std::int64_t inner = x_type->h * x_type->w;
        return launch(handle, x_type->n * inner,
                      [inner, n = x_type->c, a = scalar<C>(alpha), b = scalar<C>(beta),
                       from = static_cast<const T*>(x), to = static_cast<T*>(y)](std::int64_t i) {
                          const std::int64_t first = i / inner * n * inner + i % inner;
                          double most = -INFINITY;
                          sum(from + first, n, inner, [&](double v, std::int64_t) {
                              most = v > most || v != v ? v : most;
                              return 0.0;
                          });
                          const double total =
                              sum(from + first, n, inner,
                                  [&](double v, std::int64_t) { return std::exp(v - most); });
                          sum(from + first, n, inner, [&](double v, std::int64_t k) {
                              blend(to + first + k * inner, a, b, std::exp(v - most) / total);
                              return 0.0;
                          });
                      });
    });
}
cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void* alpha,
                                   cudnnTensorDescriptor_t y_type, const void* y,
                                   cudnnTensorDescriptor_t dy_type, const void* dy,
                                   const void* beta, cudnnTensorDescriptor_t dx_type, void* dx) {
    if (*y_type != *dy_type || *y_type != *dx_type) return bad;
    if (algorithm != CUDNN_SOFTMAX_ACCURATE || mode != CUDNN_SOFTMAX_MODE_CHANNEL)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return with(*y_type, [&]<class T, class C>(T*, C) {
        const std::int64_t inner = y_type->h * y_type->w;
        return launch(handle, y_type->n * inner,
                      [inner, n = y_type->c, a = scalar<C>(alpha), b = scalar<C>(beta),
                       v = static_cast<const T*>(y), g = static_cast<const T*>(dy),
                       to = static_cast<T*>(dx)](std::int64_t i) {
                          const std::int64_t first = i / inner * n * inner + i % inner;
                          const auto at = [&](const T* p, std::int64_t k) {
                              return static_cast<double>(load(p[first + k * inner]));
                          };
                          double dot = 0;
                          for (std::int64_t k = 0; k < n; ++k) dot += at(v, k) * at(g, k);
                          for (std::int64_t k = 0; k < n; ++k)
                              blend(to + first + k * inner, a, b, at(v, k) * (at(g, k) - dot));
                      });
    });
}

cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* lrn) {
    *lrn = new cudnnLRNStruct;
    change(&CudnnCounts::descriptors, 1);
    return ok;
}
cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned n, double alpha, double beta,
                                    double k) {
    if (n < CUDNN_LRN_MIN_N || n > CUDNN_LRN_MAX_N || beta < CUDNN_LRN_MIN_BETA ||
        k < CUDNN_LRN_MIN_K)
        return bad;
    *lrn = {static_cast<std::int64_t>(n), alpha, beta, k};
    return ok;
}
cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t lrn) {
    delete lrn;
    change(&CudnnCounts::descriptors, -1);
    return ok;
}

}  // extern "C"

namespace {

// The window from `behind` channels before to those after; alpha is divided by its width.
struct Window {
    cudnnLRNStruct l;
    std::int64_t channels, inner;

    template <class Body>
    double over(std::int64_t c, bool mirrored, const Body& body) const {
        const std::int64_t behind = (l.n - 1) / 2, ahead = l.n - behind - 1;
        double total = 0;
        for (std::int64_t j = c - (mirrored ? ahead : behind); j <= c + (mirrored ? behind : ahead);
             ++j)
            if (j >= 0 && j < channels) total += body(j);
        return total;
    }
    template <class T>
    double unit(const T* line, std::int64_t c) const {
        return l.k + l.alpha / static_cast<double>(l.n) * over(c, false, [&](std::int64_t j) {
                         const auto v = static_cast<double>(load(line[j * inner]));
                         return v * v;
                     });
    }
};

}  // namespace

extern "C" {

cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                          cudnnLRNMode_t, const void* alpha,
                                          cudnnTensorDescriptor_t x_type, const void* x,
                                          const void* beta, cudnnTensorDescriptor_t y_type,
                                          void* y) {
    if (*x_type != *y_type || lrn->n == 0) return bad;
    if (x_type->type == CUDNN_DATA_BFLOAT16) return CUDNN_STATUS_NOT_SUPPORTED;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        const Window w = {*lrn, x_type->c, x_type->h * x_type->w};
        return launch(handle, x_type->size(),
                      [w, a = scalar<C>(alpha), b = scalar<C>(beta),
                       from = static_cast<const T*>(x), to = static_cast<T*>(y)](std::int64_t at) {
                          const std::int64_t c = at / w.inner % w.channels;
                          const double unit = w.unit(from + at - c * w.inner, c);
                          blend(to + at, a, b,
                                static_cast<double>(load(from[at])) * std::pow(unit, -w.l.beta));
                      });
    });
}
cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                           cudnnLRNMode_t, const void* alpha,
                                           cudnnTensorDescriptor_t y_type, const void* y,
                                           cudnnTensorDescriptor_t dy_type, const void* dy,
                                           cudnnTensorDescriptor_t x_type, const void* x,
                                           const void* beta, cudnnTensorDescriptor_t dx_type,
                                           void* dx) {
    if (*x_type != *y_type || *x_type != *dy_type || *x_type != *dx_type || lrn->n == 0) return bad;
    if (x_type->type == CUDNN_DATA_BFLOAT16) return CUDNN_STATUS_NOT_SUPPORTED;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        const Window w = {*lrn, x_type->c, x_type->h * x_type->w};
        return launch(handle, x_type->size(),
                      [w, a = scalar<C>(alpha), b = scalar<C>(beta), xs = static_cast<const T*>(x),
                       ys = static_cast<const T*>(y), gs = static_cast<const T*>(dy),
                       to = static_cast<T*>(dx)](std::int64_t at) {
                          const std::int64_t c = at / w.inner % w.channels;
                          const std::int64_t line = at - c * w.inner;
                          const auto of = [&](const T* p, std::int64_t j) {
                              return static_cast<double>(load(p[line + j * w.inner]));
                          };
                          // y = x unit^-beta: what comes of x in its own place, and in the units around.
                          const double slope =
                              2 * w.l.alpha / static_cast<double>(w.l.n) * w.l.beta;
                          const double around = w.over(c, true, [&](std::int64_t j) {
                              return of(gs, j) * of(ys, j) / w.unit(xs + line, j);
                          });
                          const double own = of(gs, c) * std::pow(w.unit(xs + line, c), -w.l.beta);
                          blend(to + at, a, b, own - slope * of(xs, c) * around);
                      });
    });
}

}  // extern "C"

namespace {

// A channel's elements, and what is known of them.
template <class T>
struct Channel {
    const T* x;
    std::int64_t n, inner, step, c;

    std::int64_t count() const { return n * inner; }
    std::int64_t at(std::int64_t i) const { return i / inner * step + c * inner + i % inner; }
    double value(std::int64_t i) const { return static_cast<double>(load(x[at(i)])); }
    double mean() const {
        double total = 0;
        for (std::int64_t i = 0; i < count(); ++i) total += value(i);
        return total / static_cast<double>(count());
    }
    double variance(double mean) const {
        double total = 0;
        for (std::int64_t i = 0; i < count(); ++i) total += (value(i) - mean) * (value(i) - mean);
        return total / static_cast<double>(count());
    }
};
template <class T>
Channel<T> channel(const cudnnTensorStruct& t, const T* x, std::int64_t c) {
    return {x, t.n, t.h * t.w, t.c * t.h * t.w, c};
}
// Floats and doubles alone: statistics of halves have another dtype.
bool suits(const cudnnTensorStruct& x, const cudnnTensorStruct& c, cudnnBatchNormMode_t mode) {
    return c == cudnnTensorStruct{x.type, 1, x.c, 1, 1} && mode == CUDNN_BATCHNORM_SPATIAL &&
           (x.type == CUDNN_DATA_FLOAT || x.type == CUDNN_DATA_DOUBLE);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x_type, const void* x, cudnnTensorDescriptor_t y_type, void* y,
    cudnnTensorDescriptor_t channel_type, const void* scale, const void* bias, double factor,
    void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse) {
    if (*x_type != *y_type || !suits(*x_type, *channel_type, mode) || saved_mean != nullptr ||
        saved_inverse != nullptr)
        return bad;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        return launch(
            handle, x_type->c,
            [t = *x_type, a = scalar<C>(alpha), b = scalar<C>(beta),
             from = static_cast<const T*>(x), to = static_cast<T*>(y),
             gamma = static_cast<const T*>(scale), shift = static_cast<const T*>(bias),
             means = static_cast<T*>(running_mean), variances = static_cast<T*>(running_variance),
             factor, epsilon](std::int64_t c) {
                const Channel<T> all = channel(t, from, c);
                const double mean = all.mean();
                const double variance = all.variance(mean);
                const auto n = static_cast<double>(all.count());
                // What runs is the unbiased one.
                blend(means + c, factor, 1 - factor, mean);
                blend(variances + c, factor, 1 - factor, variance * n / (n - 1));
                const double inverse = 1 / std::sqrt(variance + epsilon);
                for (std::int64_t i = 0; i < all.count(); ++i)
                    blend(to + all.at(i), a, b,
                          (all.value(i) - mean) * inverse * static_cast<double>(load(gamma[c])) +
                              static_cast<double>(load(shift[c])));
            });
    });
}
cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x_type, const void* x, cudnnTensorDescriptor_t y_type, void* y,
    cudnnTensorDescriptor_t channel_type, const void* scale, const void* bias, const void* mean,
    const void* variance, double epsilon) {
    if (*x_type != *y_type || !suits(*x_type, *channel_type, mode)) return bad;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        return launch(handle, x_type->c,
                      [t = *x_type, a = scalar<C>(alpha), b = scalar<C>(beta),
                       from = static_cast<const T*>(x), to = static_cast<T*>(y),
                       gamma = static_cast<const T*>(scale), shift = static_cast<const T*>(bias),
                       means = static_cast<const T*>(mean),
                       variances = static_cast<const T*>(variance), epsilon](std::int64_t c) {
                          const Channel<T> all = channel(t, from, c);
                          const auto of = [&](const T* p) {
                              return static_cast<double>(load(p[c]));
                          };
                          const double inverse = 1 / std::sqrt(of(variances) + epsilon);
                          for (std::int64_t i = 0; i < all.count(); ++i)
                              blend(to + all.at(i), a, b,
                                    (all.value(i) - of(means)) * inverse * of(gamma) + of(shift));
                      });
    });
}
cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const void* alpha_param, const void* beta_param, cudnnTensorDescriptor_t x_type, const void* x,
    cudnnTensorDescriptor_t dy_type, const void* dy, cudnnTensorDescriptor_t dx_type, void* dx,
    cudnnTensorDescriptor_t channel_type, const void* scale, void* scale_diff, void* bias_diff,
    double epsilon, const void* saved_mean, const void* saved_inverse) {
    if (*x_type != *dy_type || *x_type != *dx_type || !suits(*x_type, *channel_type, mode) ||
        saved_mean != nullptr || saved_inverse != nullptr || dx == nullptr ||
        scale_diff == nullptr || bias_diff == nullptr)
        return bad;
    return with(*x_type, [&]<class T, class C>(T*, C) {
        return launch(
            handle, x_type->c,
            [t = *x_type, a = scalar<C>(alpha), b = scalar<C>(beta), pa = scalar<C>(alpha_param),
             pb = scalar<C>(beta_param), from = static_cast<const T*>(x),
             gs = static_cast<const T*>(dy), to = static_cast<T*>(dx),
             gamma = static_cast<const T*>(scale), dscale = static_cast<T*>(scale_diff),
             dbias = static_cast<T*>(bias_diff), epsilon](std::int64_t c) {
                const Channel<T> all = channel(t, from, c);
                const double mean = all.mean();
                const double inverse = 1 / std::sqrt(all.variance(mean) + epsilon);
                const auto n = static_cast<double>(all.count());
                double g = 0;
                double gn = 0;
                for (std::int64_t i = 0; i < all.count(); ++i) {
                    const auto v = static_cast<double>(load(gs[all.at(i)]));
                    g += v;
                    gn += v * (all.value(i) - mean) * inverse;
                }
                blend(dscale + c, pa, pb, gn);
                blend(dbias + c, pa, pb, g);
                for (std::int64_t i = 0; i < all.count(); ++i) {
                    const auto v = static_cast<double>(load(gs[all.at(i)]));
                    const double normal = (all.value(i) - mean) * inverse;
                    blend(to + all.at(i), a, b,
                          static_cast<double>(load(gamma[c])) * inverse *
                              (v - g / n - normal * gn / n));
                }
            });
    });
}
}
