// Elementwise functions on CUDA: the same formula as the body of a grid-stride kernel. Inputs of
// equal shapes only; for others supports() says no. A catena_stream is a cudaStream_t.
// Compiled and inspected in the tests; not yet run, for lack of a GPU.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin::cuda {

inline constexpr int block = 256;

template <class T, std::size_t n>
struct List {
    T item[n];
};

template <class F, class T, std::size_t... X, std::size_t... A>
__device__ void forward_element(std::int64_t i, T* y, const List<const T*, sizeof...(X)>& x,
                                const List<T, sizeof...(A) + 1>& a, bool add,
                                std::index_sequence<X...>, std::index_sequence<A...>) {
    const T value = F::template forward<T>(x.item[X][i]..., a.item[A]...);
    y[i] = add ? y[i] + value : value;
}
template <class F, class T>
__global__ void __launch_bounds__(block)
    forward_kernel(std::int64_t n, T* y, List<const T*, n_inputs<F>> x,
                   List<T, n_attributes<F> + 1> a, bool add) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * block;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block + threadIdx.x; i < n;
         i += stride)
        forward_element<F, T>(i, y, x, a, add, std::make_index_sequence<n_inputs<F>>(),
                              std::make_index_sequence<n_attributes<F>>());
}

// gx is null where no gradient is wanted; x and y are null where backward does not use them.
template <class F, class T>
__global__ void __launch_bounds__(block)
    backward_kernel(std::int64_t n, const T* gy, List<const T*, n_inputs<F>> x, const T* y,
                    List<T*, n_inputs<F>> gx, List<T, n_attributes<F> + 1> a, std::uint64_t adds) {
    constexpr Retained retained = retained_by_formula<F>();
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * block;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block + threadIdx.x; i < n;
         i += stride) {
        T v[n_inputs<F>];
        for (std::size_t k = 0; k < n_inputs<F>; ++k)
            v[k] = (retained.x >> k & 1) != 0 ? x.item[k][i] : T(0);
        const auto g = gradient_of<F, T>(gy[i], v, retained.y != 0 ? y[i] : T(0), a.item);
        for (std::size_t k = 0; k < n_inputs<F>; ++k)
            if (T* const out = gx.item[k]; out != nullptr)
                out[i] = (adds >> k & 1) != 0 ? out[i] + g.values[k] : g.values[k];
    }
}

inline unsigned grid(std::int64_t n) {
    return static_cast<unsigned>(std::min<std::int64_t>((n + block - 1) / block, 65535));
}
inline cudaStream_t stream_of(const catena_call& call) {
    return reinterpret_cast<cudaStream_t>(call.stream);
}
// One thread for each of n elements, up to a bound. Not by <<<>>>, so that any C++ compiler can read it.
template <class... P, class... A>
catena_status launch(catena_ctx* ctx, const char* function, std::int64_t n, cudaStream_t stream,
                     void (*kernel)(P...), A&&... args) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid(n));
    config.blockDim = dim3(block);
    config.stream = stream;
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, std::forward<A>(args)...);
    return error == cudaSuccess
               ? CATENA_OK
               : host().fail(
                     ctx, CATENA_E_DEVICE,
                     (std::string("[") + function + "] launch: " + cudaGetErrorString(error))
                         .c_str());
}
template <class F, class T>
List<T, n_attributes<F> + 1> attributes_of(const catena_call& call) {
    const auto values = formula_attributes<F, T>(call.attrs);
    List<T, n_attributes<F> + 1> list;
    std::copy(values.begin(), values.end(), list.item);
    return list;
}
template <class T>
T* data_or_null(const catena_tensor* t, bool used = true) {
    return t == nullptr || !used ? nullptr : data_of<T>(*t);
}

// 1 if all tensors that are there have the first output's shape.
template <class F>
std::int32_t CATENA_CALL supports(catena_ctx*, const catena_call* call) {
    const bool forward = call->phase == CATENA_PHASE_FORWARD;
    const catena_tensor* shape = forward ? call->y[0] : call->gy[0];
    if (shape == nullptr) return 0;
    for (std::uint32_t i = 0; i < call->n_x; ++i) {
        if (call->x[i] != nullptr && !same_shape(*call->x[i], *shape)) return 0;
        if (!forward && call->gx[i] != nullptr && !same_shape(*call->gx[i], *shape)) return 0;
    }
    return 1;
}

template <class F, class T>
catena_status CATENA_CALL forward(catena_ctx* ctx, const catena_call* call) noexcept {
    const std::int64_t n = size_of(*call->y[0]);
    if (n == 0) return CATENA_OK;
    List<const T*, n_inputs<F>> x;
    for (std::size_t i = 0; i < n_inputs<F>; ++i) x.item[i] = data_of<const T>(*call->x[i]);
    return launch(ctx, F::about.name, n, stream_of(*call), forward_kernel<F, T>, n,
                  data_of<T>(*call->y[0]), x, attributes_of<F, T>(*call),
                  call->req[0] == CATENA_REQ_ADD);
}

template <class F, class T>
catena_status CATENA_CALL backward(catena_ctx* ctx, const catena_call* call) noexcept {
    constexpr Retained retained = retained_by_formula<F>();
    const std::int64_t n = size_of(*call->gy[0]);
    if (n == 0) return CATENA_OK;
    List<const T*, n_inputs<F>> x;
    List<T*, n_inputs<F>> gx;
    std::uint64_t adds = 0;
    for (std::size_t i = 0; i < n_inputs<F>; ++i) {
        x.item[i] = data_or_null<const T>(call->x[i], (retained.x >> i & 1) != 0);
        gx.item[i] = data_or_null<T>(call->gx[i]);
        if (call->req[i] == CATENA_REQ_ADD) adds |= std::uint64_t{1} << i;
    }
    return launch(ctx, F::about.name, n, stream_of(*call), backward_kernel<F, T>, n,
                  data_of<const T>(*call->gy[0]), x,
                  data_or_null<const T>(call->y[0], retained.y != 0), gx,
                  attributes_of<F, T>(*call), adds);
}

template <class F, class T>
constexpr catena_kernel kernel(int phase) {
    catena_kernel k = {};
    k.struct_size = sizeof(catena_kernel);
    k.flags = CATENA_KERNEL_ADDS | CATENA_KERNEL_DETERMINISTIC;
    k.phase = phase;
    k.priority = CATENA_PRIORITY_PORTABLE;
    k.function = F::about.name;
    k.version_min = F::about.version;
    k.version_max = F::about.version;
    k.device = "cuda";
    k.isa = "";
    k.types = Row<T>::dtypes;
    k.n_types = 1;
    k.supports = &supports<F>;
    k.run = phase == CATENA_PHASE_FORWARD ? &forward<F, T> : nullptr;
    if constexpr (ElementwiseGradient<F>)
        if (phase == CATENA_PHASE_BACKWARD) k.run = &backward<F, T>;
    return k;
}

template <class F>
struct Kernels {
    static_assert(Elementwise<F>, "CATENA_PLUGIN in a .cu file takes elementwise functions");
    static constexpr std::size_t n = ElementwiseGradient<F> ? 4 : 2;
    static constexpr catena_kernel all[] = {
        kernel<F, float>(CATENA_PHASE_FORWARD), kernel<F, double>(CATENA_PHASE_FORWARD),
        kernel<F, float>(CATENA_PHASE_BACKWARD), kernel<F, double>(CATENA_PHASE_BACKWARD)};
    static constexpr std::array<const catena_kernel*, n> list() {
        std::array<const catena_kernel*, n> result{};
        for (std::size_t i = 0; i < n; ++i) result[i] = &all[i];
        return result;
    }
};
template <class F>
inline constexpr auto kernel_list = Kernels<F>::list();

}  // namespace catena::plugin::cuda
