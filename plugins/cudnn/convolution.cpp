// convolution_2d, deconvolution_2d and the gradient for filters: each is one or two of three products.
#include <algorithm>

#include "bias.hpp"
#include "operations.hpp"
#include "plans.hpp"

namespace catena_cudnn {
namespace {

// One of cuDNN's operations; tensors as the product names them, bias may be null.
struct Step {
    Direction direction;
    const catena_tensor* x;
    const catena_tensor* w;
    const catena_tensor* y;
    const catena_tensor* bias;
    bool add;
};
struct Work {
    Geometry g;
    Step steps[2] = {};
    int n_steps = 0;
    // The bias's gradient: of these images.
    const catena_tensor* summed = nullptr;
    catena_tensor* sum = nullptr;
    bool add_sum = false;

    // Where the result is not wanted there is no step.
    void step(const catena_tensor* result, const Step& s) {
        if (result != nullptr) steps[n_steps++] = s;
    }
};

std::int64_t step_of(const catena_call& call, const char* name, bool y) {
    const catena_value& v = attribute(call, name);
    return v.v.ints[y ? 0 : v.n - 1];
}

// x has the channels of the filters' second axis, y their first.
Geometry geometry(const catena_call& call, const catena_tensor& x_tensor,
                  const catena_tensor& y_tensor, const catena_tensor& w_tensor) {
    const Shape x = shape_of(x_tensor);
    const Shape y = shape_of(y_tensor);
    const Shape w = shape_of(w_tensor);
    return {.n = x[0],
            .channels = x[1],
            .height = x[2],
            .width = x[3],
            .outputs = y[1],
            .oh = y[2],
            .ow = y[3],
            .kh = w[2],
            .kw = w[3],
            .stride_y = step_of(call, "stride", true),
            .stride_x = step_of(call, "stride", false),
            .pad_y = step_of(call, "pad", true),
            .pad_x = step_of(call, "pad", false)};
}

bool is_forward(const catena_call& call) { return call.phase == CATENA_PHASE_FORWARD; }
// The result of a forward call, or its gradient.
const catena_tensor* outcome(const catena_call& call) {
    return is_forward(call) ? call.y[0] : call.gy[0];
}
void bias_gradient(const catena_call& call, Work& work) {
    work.summed = call.gy[0];
    work.sum = call.gx[2];
    work.add_sum = work.sum != nullptr && adds(call, 2);
}

Work convolution(const catena_call& call) {
    const catena_tensor* const x = call.x[0];
    const catena_tensor* const w = call.x[1];
    const catena_tensor* const y = outcome(call);
    Work work = {.g = geometry(call, *x, *y, *w)};
    if (is_forward(call)) {
        work.step(y, {Direction::forward, x, w, y, call.x[2], adds(call, 0)});
        return work;
    }
    const catena_tensor* const gx = call.gx[0];
    const catena_tensor* const gw = call.gx[1];
    work.step(gx, {Direction::data, gx, w, y, nullptr, adds(call, 0)});
    work.step(gw, {Direction::filter, x, gw, y, nullptr, adds(call, 1)});
    bias_gradient(call, work);
    return work;
}
Work deconvolution(const catena_call& call) {
    const catena_tensor* const x = call.x[0];
    const catena_tensor* const w = call.x[1];
    const catena_tensor* const y = outcome(call);
    Work work = {.g = geometry(call, *y, *x, *w)};
    if (is_forward(call)) {
        work.step(y, {Direction::data, y, w, x, call.x[2], adds(call, 0)});
        return work;
    }
    const catena_tensor* const gx = call.gx[0];
    const catena_tensor* const gw = call.gx[1];
    work.step(gx, {Direction::forward, y, w, gx, nullptr, adds(call, 0)});
    work.step(gw, {Direction::filter, y, gw, x, nullptr, adds(call, 1)});
    bias_gradient(call, work);
    return work;
}
Work filters_gradient(const catena_call& call) {
    const catena_tensor* const x = call.x[0];
    const catena_tensor* const gy = call.x[1];
    const catena_tensor* const w = outcome(call);
    Work work = {.g = geometry(call, *x, *gy, *w)};
    if (is_forward(call)) {
        work.step(w, {Direction::filter, x, w, gy, nullptr, adds(call, 0)});
        return work;
    }
    const catena_tensor* const gx = call.gx[0];
    const catena_tensor* const ggy = call.gx[1];
    work.step(gx, {Direction::data, gx, w, gy, nullptr, adds(call, 0)});
    work.step(ggy, {Direction::forward, x, w, ggy, nullptr, adds(call, 1)});
    return work;
}

// Nothing that is empty, no places beyond the pad, and no tensor whose elements 32 bits do not
// count: not all of cuDNN's engines take such rightly.
bool fits(const Geometry& g) {
    const std::int64_t sizes[] = {g.n,  g.channels, g.height, g.width,    g.outputs, g.oh,
                                  g.ow, g.kh,       g.kw,     g.stride_y, g.stride_x};
    if (std::ranges::min(sizes) < 1 || std::max(g.pad_y, g.pad_x) > INT_MAX) return false;
    // Places beyond the pad, of cover_all: cuDNN is told of the same pad on both sides.
    if ((g.oh - 1) * g.stride_y + g.kh > g.height + 2 * g.pad_y ||
        (g.ow - 1) * g.stride_x + g.kw > g.width + 2 * g.pad_x)
        return false;
    const std::int64_t shapes[][4] = {{g.n, g.channels, g.height, g.width},
                                      {g.n, g.outputs, g.oh, g.ow},
                                      {g.outputs, g.channels, g.kh, g.kw}};
    return std::ranges::max(sizes) <= INT_MAX &&
           std::ranges::all_of(shapes, [](const auto& s) { return size_of(Shape(s)) <= INT_MAX; });
}

template <Work (*read)(const catena_call&)>
std::int32_t supports(catena_ctx* ctx, const catena_call* call) noexcept {
    try {
        if (!wanted(ctx) || outcome(*call) == nullptr) return 0;
        return fits(read(*call).g) ? 1 : 0;
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
    return {.direction = s.direction,
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
    if (s.bias != nullptr && s.direction == Direction::forward && !s.add) {
        const Problem whole = problem_of(g, s, true, deterministic);
        if (can(ctx, call, whole)) return whole;
    }
    return problem_of(g, s, false, deterministic);
}

// Kernels that may give other bits keep to the same ones where the call says so.
bool is_deterministic(const catena_call& call, Rank rank) {
    return rank != Rank::varying || (call.flags & CATENA_CALL_DETERMINISTIC) != 0;
}

template <Work (*read)(const catena_call&), Rank rank>
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const Work work = read(*call);
        std::uint64_t bytes = work.sum != nullptr ? sum_channels_scratch(*work.summed) : 0;
        for (const Step& s : std::span(work.steps, static_cast<std::size_t>(work.n_steps))) {
            const Problem p = choose(ctx, *call, work.g, s, is_deterministic(*call, rank));
            if (!can(ctx, *call, p))
                fail(CATENA_E_UNSUPPORTED, call->function->name, "cuDNN", "an engine for this call",
                     "none");
            bytes = std::max(bytes, scratch_for(ctx, *call, p));
        }
        plan->scratch_bytes = bytes;
    });
}

template <Work (*read)(const catena_call&), Rank rank>
catena_status run(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const Work work = read(*call);
        for (const Step& s : std::span(work.steps, static_cast<std::size_t>(work.n_steps))) {
            const Problem p = choose(ctx, *call, work.g, s, is_deterministic(*call, rank));
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

template <Work (*read)(const catena_call&), Rank rank>
void append(std::vector<catena_kernel>& all, const char* function) {
    for (const catena_dtype* types :
         {Row<float>::dtypes, Row<double>::dtypes, Row<Float16>::dtypes, Row<BFloat16>::dtypes})
        for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
            all.push_back(kernel(function, phase, types, rank, supports<read>, plan<read, rank>,
                                 run<read, rank>));
            all.back().version_max = 2;  // which has cover_all
        }
}
template <Rank rank>
void append_ranked(std::vector<catena_kernel>& all) {
    append<convolution, rank>(all, "catena.convolution_2d");
    append<deconvolution, rank>(all, "catena.deconvolution_2d");
    append<filters_gradient, rank>(all, "catena.convolution_2d_grad_w");
}

}  // namespace

void append_convolutions(std::vector<catena_kernel>& all) {
    append_ranked<Rank::always>(all);
    if (settings().varying()) append_ranked<Rank::varying>(all);
}

}  // namespace catena_cudnn
