// Kernels of convolution_2d, deconvolution_2d and convolution_2d_grad_w: each computes one or two products.
#include <algorithm>

#include <catena/plugin/cuda/launch.cuh>

#include "graph.hpp"

namespace catena_cudnn {
namespace {

constexpr const catena_dtype* floating_types[] = {Row<float>::dtypes, Row<double>::dtypes,
                                                  Row<Float16>::dtypes, Row<BFloat16>::dtypes};

using Step = ConvolutionStep;

// Whether cuDNN supports the sizes. Not all engines are correct for tensors of 2^31 or more elements.
bool fits(const Geometry& g) {
    const std::int64_t shapes[][4] = {{g.n, g.channels, g.height, g.width},
                                      {g.n, g.outputs, g.oh, g.ow},
                                      {g.outputs, g.group_channels(), g.kh, g.kw}};
    return g.is_common() &&
           std::ranges::all_of(shapes, [](const auto& s) { return size_of(Shape(s)) <= INT_MAX; });
}

std::int32_t supports(catena_ctx* ctx, const catena_call* call) noexcept {
    try {
        if (!wanted(ctx) || outcome(*call) == nullptr) return 0;
        return fits(convolution_call(*call).sizes) ? 1 : 0;
    } catch (const std::exception&) {
        return 0;
    }
}

// Returns the alignment of all data: 16 bytes, or the element size if some tensor is aligned to less.
std::int64_t alignment_of(const Step& s) {
    constexpr std::uintptr_t pack = 16;
    const std::int64_t element = s.x->dl.dtype.bits / 8;
    for (const catena_tensor* t : {s.x, s.w, s.y, s.bias})
        if (t != nullptr && reinterpret_cast<std::uintptr_t>(data_of<char>(*t)) % pack != 0)
            return element;
    return pack;
}

// Returns the problem of a step. bias: whether the bias is part of the graph.
Problem problem_of(const catena_call& call, const Geometry& g, const Step& s, bool bias,
                   bool deterministic) {
    return {.operation = Convolution{s.product, g, bias},
            .dtype = type_of(*s.x),
            .add = s.add,
            .deterministic = deterministic,
            .half = (call.flags & (CATENA_CALL_BFLOAT16 | CATENA_CALL_FLOAT16)) != 0,
            .alignment = alignment_of(s)};
}
// Makes the bias part of the graph if an engine of cuDNN supports this. Else it is added afterwards.
Problem choose(catena_ctx* ctx, const catena_call& call, const Geometry& g, const Step& s,
               bool deterministic) {
    if (s.bias != nullptr && s.product == Direction::forward && !s.add) {
        const Problem whole = problem_of(call, g, s, true, deterministic);
        if (can(ctx, call, whole)) return whole;
    }
    return problem_of(call, g, s, false, deterministic);
}

template <bool varying>
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const ConvolutionCall work = convolution_call(*call);
        std::uint64_t bytes = work.sum != nullptr ? sum_channels_scratch(*work.summed) : 0;
        for (const Step& s : work.products()) {
            const Problem p = choose(ctx, *call, work.sizes, s, is_deterministic(*call, varying));
            if (!can(ctx, *call, p))
                fail(CATENA_E_UNSUPPORTED, call->function->name, "cuDNN", "an engine for this call",
                     "none");
            bytes = std::max(bytes, scratch_for(ctx, *call, p));
        }
        plan->scratch_bytes = bytes;
    });
}

template <bool varying>
catena_status run(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const ConvolutionCall work = convolution_call(*call);
        for (const Step& s : work.products()) {
            const Problem p = choose(ctx, *call, work.sizes, s, is_deterministic(*call, varying));
            Pointers pointers = {};
            pointers[tensor_x] = data(s.x);
            pointers[tensor_w] = data(s.w);
            pointers[tensor_y] = data(s.y);
            const bool bias = std::get<Convolution>(p.operation).bias;
            if (bias) pointers[tensor_b] = data(s.bias);
            catena_cudnn::run(ctx, *call, p, pointers);
            if (s.bias != nullptr && !bias) add_bias(*call, *s.bias, *call->y[0]);
        }
        if (work.sum != nullptr)
            sum_channels(*call, *work.summed, *work.sum, work.add_sum, call->scratch);
    });
}

// varying: may be faster, but results may differ between runs.
template <bool varying>
void append(std::vector<catena_kernel>& all) {
    for (const char* function : {convolution_2d, deconvolution_2d, convolution_2d_grad_w})
        for (const catena_dtype* types : floating_types)
            for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
                all.push_back(kernel_of(function, phase, types, varying, supports, plan<varying>,
                                        run<varying>));
                all.back().version_min = all.back().version_max = 3;  // which has groups
            }
}

}  // namespace

std::vector<catena_kernel> convolution_kernels() {
    std::vector<catena_kernel> all;
    append<false>(all);
    if (settings().varying()) append<true>(all);
    return all;
}

}  // namespace catena_cudnn
