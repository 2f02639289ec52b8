// convolution_2d, deconvolution_2d and the gradient for filters: each is one or two of three products.
#include <algorithm>

#include "bias.hpp"
#include "operations.hpp"
#include "plans.hpp"

namespace catena_cudnn {
namespace {

using Step = ConvolutionStep;
using Read = ConvolutionCall (*)(const catena_call&);

// No tensor whose elements 32 bits do not count: not all of cuDNN's engines take such rightly.
bool fits(const Geometry& g) {
    const std::int64_t shapes[][4] = {{g.n, g.channels, g.height, g.width},
                                      {g.n, g.outputs, g.oh, g.ow},
                                      {g.outputs, g.channels, g.kh, g.kw}};
    return g.is_common() &&
           std::ranges::all_of(shapes, [](const auto& s) { return size_of(Shape(s)) <= INT_MAX; });
}

template <Read read>
std::int32_t supports(catena_ctx* ctx, const catena_call* call) noexcept {
    try {
        if (!wanted(ctx) || outcome(*call) == nullptr) return 0;
        return fits(read(*call).sizes) ? 1 : 0;
    } catch (const std::exception&) {
        return 0;
    }
}

// What engines may count on: 16 bytes, or that elements are aligned.
std::int64_t alignment_of(const Step& s) {
    constexpr std::uintptr_t pack = 16;
    const std::int64_t element = s.x->dl.dtype.bits / 8;
    for (const catena_tensor* t : {s.x, s.w, s.y, s.bias})
        if (t != nullptr && reinterpret_cast<std::uintptr_t>(data_of<char>(*t)) % pack != 0)
            return element;
    return pack;
}

// The problem of a step, with its bias in it or without.
Problem problem_of(const Geometry& g, const Step& s, bool bias, bool deterministic) {
    return {.direction = s.product,
            .dtype = type_of(*s.x),
            .g = g,
            .bias = bias,
            .add = s.add,
            .deterministic = deterministic,
            .alignment = alignment_of(s)};
}
// The bias is part of the graph where that is known to be one of cuDNN's patterns, and an engine takes
// it; else it is added afterwards.
Problem choose(catena_ctx* ctx, const catena_call& call, const Geometry& g, const Step& s,
               bool deterministic) {
    if (s.bias != nullptr && s.product == Direction::forward && !s.add) {
        const Problem whole = problem_of(g, s, true, deterministic);
        if (can(ctx, call, whole)) return whole;
    }
    return problem_of(g, s, false, deterministic);
}

// Kernels that may give other bits keep to the same ones where the call says so.
bool is_deterministic(const catena_call& call, Rank rank) {
    return rank != Rank::varying || (call.flags & CATENA_CALL_DETERMINISTIC) != 0;
}

template <Read read, Rank rank>
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const ConvolutionCall work = read(*call);
        std::uint64_t bytes = work.sum != nullptr ? sum_channels_scratch(*work.summed) : 0;
        for (const Step& s : work.products()) {
            const Problem p = choose(ctx, *call, work.sizes, s, is_deterministic(*call, rank));
            if (!can(ctx, *call, p))
                fail(CATENA_E_UNSUPPORTED, call->function->name, "cuDNN", "an engine for this call",
                     "none");
            bytes = std::max(bytes, scratch_for(ctx, *call, p));
        }
        plan->scratch_bytes = bytes;
    });
}

template <Read read, Rank rank>
catena_status run(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const ConvolutionCall work = read(*call);
        for (const Step& s : work.products()) {
            const Problem p = choose(ctx, *call, work.sizes, s, is_deterministic(*call, rank));
            Pointers pointers = {};
            pointers[tensor_x] = data(s.x);
            pointers[tensor_w] = data(s.w);
            pointers[tensor_y] = data(s.y);
            if (p.bias) pointers[tensor_b] = data(s.bias);
            catena_cudnn::run(ctx, *call, p, pointers);
            if (s.bias != nullptr && !p.bias) add_bias(*call, *s.bias, *call->y[0]);
        }
        if (work.sum != nullptr)
            sum_channels(*call, *work.summed, *work.sum, work.add_sum, call->scratch);
    });
}

template <Read read, Rank rank>
void append(std::vector<catena_kernel>& all, const char* function) {
    for (const catena_dtype* types : floating_types)
        for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
            all.push_back(kernel(function, phase, types, rank, supports<read>, plan<read, rank>,
                                 run<read, rank>));
            all.back().version_max = 2;  // which has cover_all
        }
}
template <Rank rank>
void append_ranked(std::vector<catena_kernel>& all) {
    append<convolution_2d, rank>(all, "catena.convolution_2d");
    append<deconvolution_2d, rank>(all, "catena.deconvolution_2d");
    append<convolution_2d_grad_w, rank>(all, "catena.convolution_2d_grad_w");
}

}  // namespace

void append_convolutions(std::vector<catena_kernel>& all) {
    append_ranked<Rank::always>(all);
    if (settings().varying()) append_ranked<Rank::varying>(all);
}

}  // namespace catena_cudnn
