// Kernels for a few of catena's functions on the device "river": sums, gradients, updates in place and
// scratch memory. The work runs after the call has returned, so it must not use the call's structs.
#include "river.hpp"

#include <catena/plugin/philox.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace {

using namespace river;

std::int64_t size_of(const catena_tensor* t) {
    return static_cast<std::int64_t>(t->nbytes) * 8 / t->dl.dtype.bits;
}

template <class T>
T* at(const catena_call* call, const catena_tensor* t) {
    return t ? static_cast<T*>(near(call, t)) : nullptr;
}

std::int32_t same_shapes(catena_ctx*, const catena_call* call) {
    return call->x[0]->nbytes == call->x[1]->nbytes;
}

// y = f(x0, x1), computed in scratch memory first, so that the reuse of scratch memory is tested.
template <class T, class Formula>
catena_status binary(catena_ctx* ctx, const catena_call* call, Formula formula) {
    const T* a = at<const T>(call, call->x[0]);
    const T* b = at<const T>(call, call->x[1]);
    T* y = at<T>(call, call->y[0]);
    T* scratch = static_cast<T*>(near(call, call->scratch));
    const std::int64_t n = size_of(call->y[0]);
    return give(ctx, call, [=] {
        for (std::int64_t i = 0; i < n; ++i) scratch[i] = formula(a[i], b[i]);
        std::copy(scratch, scratch + n, y);
    });
}
catena_status plan(catena_ctx*, const catena_call* call, catena_plan* plan) {
    plan->scratch_bytes = call->x[0]->nbytes;
    return CATENA_OK;
}
template <class T>
catena_status add(catena_ctx* ctx, const catena_call* call) {
    return binary<T>(ctx, call, [](T a, T b) { return a + b; });
}
template <class T>
catena_status mul(catena_ctx* ctx, const catena_call* call) {
    return binary<T>(ctx, call, [](T a, T b) { return a * b; });
}

template <class T>
void put(T* to, std::int64_t i, T value, bool adds) {
    to[i] = adds ? to[i] + value : value;
}
// gx[k] = gy * factor[k]; a NULL factor means 1.
template <class T>
catena_status gradient(catena_ctx* ctx, const catena_call* call, const T* factor0,
                       const T* factor1) {
    const T* gy = at<const T>(call, call->gy[0]);
    const T* factor[2] = {factor0, factor1};
    for (std::uint32_t k = 0; k < 2; ++k) {
        if (!call->gx[k]) continue;
        const catena_status status =
            give(ctx, call,
                 [n = size_of(call->gx[k]), gx = at<T>(call, call->gx[k]), f = factor[k], gy,
                  adds = call->req[k] == CATENA_REQ_ADD] {
                     for (std::int64_t i = 0; i < n; ++i)
                         put(gx, i, f ? gy[i] * f[i] : gy[i], adds);
                 });
        if (status != CATENA_OK) return status;
    }
    return CATENA_OK;
}
template <class T>
catena_status add_backward(catena_ctx* ctx, const catena_call* call) {
    return gradient<T>(ctx, call, nullptr, nullptr);
}
template <class T>
catena_status mul_backward(catena_ctx* ctx, const catena_call* call) {
    return gradient<T>(ctx, call, at<const T>(call, call->x[1]), at<const T>(call, call->x[0]));
}

template <class T>
catena_status relu(catena_ctx* ctx, const catena_call* call) {
    return give(
        ctx, call,
        [n = size_of(call->y[0]), x = at<const T>(call, call->x[0]), y = at<T>(call, call->y[0])] {
            for (std::int64_t i = 0; i < n; ++i) y[i] = std::max(x[i], T(0));
        });
}
template <class T>
catena_status relu_backward(catena_ctx* ctx, const catena_call* call) {
    return give(ctx, call,
                [n = size_of(call->gx[0]), y = at<const T>(call, call->y[0]),
                 gy = at<const T>(call, call->gy[0]), gx = at<T>(call, call->gx[0])] {
                    for (std::int64_t i = 0; i < n; ++i) gx[i] = y[i] > T(0) ? gy[i] : T(0);
                });
}

template <class T>
catena_status sgd(catena_ctx* ctx, const catena_call* call) {
    auto* param = const_cast<T*>(at<const T>(call, call->x[0]));
    return give(ctx, call,
                [n = size_of(call->x[0]), param, grad = at<const T>(call, call->x[1]),
                 lr = static_cast<T>(call->attrs[0].v.f)] {
                    for (std::int64_t i = 0; i < n; ++i) param[i] -= lr * grad[i];
                });
}

// The lowest bit of random block i decides whether element i is kept. The blocks are drawn before
// give(), which may fail for lack of memory.
template <class T>
catena_status dropout(catena_ctx* ctx, const catena_call* call) {
    const std::int64_t n = size_of(call->y[0]);
    std::uint64_t seed = 0, offset = 0;
    const catena_status status = host->philox(ctx, static_cast<std::uint64_t>(n), &seed, &offset);
    if (status != CATENA_OK) return status;
    return give(ctx, call,
                [=, x = at<const T>(call, call->x[0]), y = at<T>(call, call->y[0]),
                 kept = at<std::int64_t>(call, call->y[1])] {
                    for (std::int64_t i = 0; i < n; ++i) {
                        const auto block = offset + static_cast<std::uint64_t>(i);
                        y[i] =
                            (catena::plugin::philox(seed, block).v[0] & 1) != 0 ? 2 * x[i] : T(0);
                    }
                    kept[0] = static_cast<std::int64_t>(seed);
                    kept[1] = static_cast<std::int64_t>(offset);
                    kept[2] = 1;
                });
}

template <class T>
constexpr catena_dtype row[] = {catena::plugin::dtype_of<T>(),
                                catena::plugin::dtype_of<std::int64_t>()};

constexpr std::uint32_t plain = CATENA_KERNEL_DETERMINISTIC;
constexpr std::uint32_t adds = plain | CATENA_KERNEL_ADDS;

template <class T>
constexpr catena_kernel kernel(const char* function, std::int32_t phase,
                               decltype(catena_kernel::run) run, bool two = false) {
    return {.struct_size = sizeof(catena_kernel),
            .flags = two && phase == CATENA_PHASE_BACKWARD ? adds : plain,
            .phase = phase,
            .priority = CATENA_PRIORITY_PORTABLE,
            .function = function,
            .version_min = 1,
            .version_max = 1,
            .device = "river",
            .isa = "",
            .types = row<T>,
            .n_types = 1,
            .n_saved = 0,
            .variant = two ? "" : nullptr,
            .retain_x = two ? 3u : 0u,
            .retain_y = 0,
            .supports = two ? same_shapes : nullptr,
            .plan = two && phase == CATENA_PHASE_FORWARD ? plan : nullptr,
            .run = run,
            .name = nullptr};
}
template <class T>
constexpr catena_kernel kernels_for[] = {
    kernel<T>("catena.add", CATENA_PHASE_FORWARD, add<T>, true),
    kernel<T>("catena.add", CATENA_PHASE_BACKWARD, add_backward<T>, true),
    kernel<T>("catena.mul", CATENA_PHASE_FORWARD, mul<T>, true),
    kernel<T>("catena.mul", CATENA_PHASE_BACKWARD, mul_backward<T>, true),
    kernel<T>("catena.relu", CATENA_PHASE_FORWARD, relu<T>),
    kernel<T>("catena.relu", CATENA_PHASE_BACKWARD, relu_backward<T>),
    kernel<T>("catena.sgd_update", CATENA_PHASE_FORWARD, sgd<T>),
    kernel<T>("catena.dropout", CATENA_PHASE_FORWARD, dropout<T>),
};
const auto kernels = [] {
    std::array<const catena_kernel*, 2 * std::size(kernels_for<float>)> all{};
    auto to = all.begin();
    for (const catena_kernel& k : kernels_for<float>) *to++ = &k;
    for (const catena_kernel& k : kernels_for<double>) *to++ = &k;
    return all;
}();
const catena_backend* const backends[] = {&backend};

const catena_plugin table = {
    .struct_size = sizeof(catena_plugin),
    .n_functions = 0,
    .n_kernels = kernels.size(),
    .n_backends = 1,
    .n_extensions = 0,
    .reserved = 0,
    .functions = nullptr,
    .kernels = kernels.data(),
    .backends = backends,
    .extensions = nullptr,
    .init = nullptr,
    .deinit = nullptr,
};

}  // namespace

extern "C" {
[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] constexpr catena_manifest catena_manifest_v1 =
    catena::plugin::manifest("org.example.river", "1.0.0", "", "", "river");

const catena_plugin* catena_plugin_entry_v1(const catena_host* given, catena_ctx*) {
    host = given;
    return &table;
}
}
