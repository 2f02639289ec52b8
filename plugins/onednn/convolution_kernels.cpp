// convolution_2d, deconvolution_2d and the gradient for filters: each is one or two of three products.
#include <algorithm>
#include <climits>

#include "convolution.hpp"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

// Images, filters and their geometry, as the products name them; bias and its gradient may be null.
struct Map {
    Mapping::Direction direction;
    const catena_tensor* from;
    const catena_tensor* w;
    const catena_tensor* bias;
    catena_tensor* to;  // null: not wanted
    bool add;
};
struct Correlate {
    const catena_tensor* x;
    const catena_tensor* y;
    catena_tensor* w;  // null: not wanted
    catena_tensor* bias;
    bool add;
    bool add_bias;
};
struct Work {
    Geometry g;
    Map maps[2] = {};
    Correlate correlate = {};
    // The bias's gradient alone, of these images.
    const catena_tensor* summed = nullptr;
    catena_tensor* sum = nullptr;
    bool add_sum = false;
};

std::int64_t step_of(const catena_call& call, const char* name, bool y) {
    const catena_value& v = attribute(call, name);
    return v.v.ints[y ? 0 : v.n - 1];
}

// x has the channels of the filters' second axis, y their first.
Geometry geometry(const catena_call& call, Shape x, Shape y, Shape w) {
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

// The forward calls have y, the backward calls gy and gx.
Work convolution(const catena_call& call) {
    const bool forward = call.phase == CATENA_PHASE_FORWARD;
    const catena_tensor* const x = call.x[0];
    const catena_tensor* const w = call.x[1];
    const catena_tensor* const y = forward ? call.y[0] : call.gy[0];
    Work work = {.g = geometry(call, shape_of(*x), shape_of(*y), shape_of(*w))};
    const auto add = [&](int i) { return call.req[i] == CATENA_REQ_ADD; };
    if (forward) {
        work.maps[0] = {Mapping::forwards, x, w, call.x[2], call.y[0], add(0)};
        return work;
    }
    work.maps[0] = {Mapping::backwards, y, w, nullptr, call.gx[0], add(0)};
    work.correlate = {x,          y,
                      call.gx[1], call.gx[1] != nullptr ? call.gx[2] : nullptr,
                      add(1),     call.gx[2] != nullptr && add(2)};
    if (call.gx[1] == nullptr && call.gx[2] != nullptr) {
        work.summed = y;
        work.sum = call.gx[2];
        work.add_sum = add(2);
    }
    return work;
}
Work deconvolution(const catena_call& call) {
    const bool forward = call.phase == CATENA_PHASE_FORWARD;
    const catena_tensor* const x = call.x[0];
    const catena_tensor* const w = call.x[1];
    const catena_tensor* const y = forward ? call.y[0] : call.gy[0];
    Work work = {.g = geometry(call, shape_of(*y), shape_of(*x), shape_of(*w))};
    const auto add = [&](int i) { return call.req[i] == CATENA_REQ_ADD; };
    if (forward) {
        work.maps[0] = {Mapping::backwards, x, w, call.x[2], call.y[0], add(0)};
        return work;
    }
    work.maps[0] = {Mapping::forwards, y, w, nullptr, call.gx[0], add(0)};
    work.correlate = {y, x, call.gx[1], nullptr, add(1), false};
    work.summed = y;
    work.sum = call.gx[2];
    work.add_sum = work.sum != nullptr && add(2);
    return work;
}
Work filters_gradient(const catena_call& call) {
    const bool forward = call.phase == CATENA_PHASE_FORWARD;
    const catena_tensor* const x = call.x[0];
    const catena_tensor* const gy = call.x[1];
    const catena_tensor* const w = forward ? call.y[0] : call.gy[0];
    Work work = {.g = geometry(call, shape_of(*x), shape_of(*gy), shape_of(*w))};
    const auto add = [&](int i) { return call.req[i] == CATENA_REQ_ADD; };
    if (forward) {
        work.correlate = {x, gy, call.y[0], nullptr, add(0), false};
        return work;
    }
    work.maps[0] = {Mapping::backwards, gy, w, nullptr, call.gx[0], add(0)};
    work.maps[1] = {Mapping::forwards, x, w, nullptr, call.gx[1], add(1)};
    return work;
}

// What the portable kernels do not do as fast, measured: README.md has the numbers.
constexpr double least_work = 1e6;      // smaller ones are over before a primitive is called
constexpr double least_fullness = 0.7;  // of the channels that oneDNN computes
constexpr double least_reuse = 64;      // multiply-adds for each number that a 1x1 filter moves

double fullness(std::int64_t channels) {
    return static_cast<double>(channels) / static_cast<double>((channels + 15) / 16 * 16);
}

bool worth_it(const Geometry& g) {
    const std::int64_t sizes[] = {g.n,  g.channels, g.height, g.width,    g.outputs, g.oh,
                                  g.ow, g.kh,       g.kw,     g.stride_y, g.stride_x};
    if (std::ranges::min(sizes) < 1 || std::ranges::max(sizes) > INT_MAX) return false;
    // Places beyond the pad, of cover_all: oneDNN is told of the same pad on both sides.
    if ((g.oh - 1) * g.stride_y + g.kh > g.height + 2 * g.pad_y ||
        (g.ow - 1) * g.stride_x + g.kw > g.width + 2 * g.pad_x)
        return false;
    // Padding beyond the filter leaves pixels that see zeros alone: oneDNN's fast code wants none.
    if (g.pad_y >= g.kh || g.pad_x >= g.kw) return false;
    const auto channels = static_cast<double>(g.channels);
    const auto outputs = static_cast<double>(g.outputs);
    if (g.kh == 1 && g.kw == 1 &&
        (g.stride_y > 1 || g.stride_x > 1 ||
         channels * outputs < least_reuse * (channels + outputs)))
        return false;
    return fullness(g.channels) * fullness(g.outputs) >= least_fullness &&
           static_cast<double>(g.n) * static_cast<double>(g.work()) >= least_work;
}

template <Work (*read)(const catena_call&)>
std::int32_t supports(catena_ctx*, const catena_call* call) {
    if (call->phase == CATENA_PHASE_BACKWARD && call->gy[0] == nullptr) return 0;
    return worth_it(read(*call).g) ? 1 : 0;
}

std::shared_ptr<const Mapping> make(const Geometry& g, const Map& map) {
    return Mapping::get(g, map.direction, map.bias != nullptr, map.add);
}
std::shared_ptr<const Correlation> make(const Geometry& g, const Correlate& c) {
    return Correlation::get(g, c.bias != nullptr, c.add);
}

template <Work (*read)(const catena_call&)>
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) {
    return planned(ctx, [&] {
        const Work work = read(*call);
        const std::int32_t slots = host().slots(ctx);
        std::size_t bytes = 0;
        for (const Map& map : work.maps)
            if (map.to != nullptr) bytes = std::max(bytes, make(work.g, map)->scratch_bytes(slots));
        if (work.correlate.w != nullptr)
            bytes = std::max(bytes, make(work.g, work.correlate)->scratch_bytes(slots));
        plan->scratch_bytes = bytes;
    });
}

// Sums images over all but their channels.
void sum_channels(catena_ctx* ctx, const catena_tensor& images, catena_tensor& sums, bool add) {
    const Shape shape = shape_of(images);
    const float* const data = data_of<const float>(images);
    float* const out = data_of<float>(sums);
    const std::int64_t plane = shape[2] * shape[3];
    parallel(ctx, shape[1], [&](std::int64_t begin, std::int64_t end, std::int32_t) {
        for (std::int64_t c = begin; c < end; ++c) {
            double sum = 0;
            for (std::int64_t n = 0; n < shape[0]; ++n) {
                const float* const pixels = data + (n * shape[1] + c) * plane;
                float part[16] = {};  // independent, so that vectors can add them
                for (std::int64_t p = 0; p < plane; ++p) part[p % 16] += pixels[p];
                for (const float value : part) sum += static_cast<double>(value);
            }
            store(out[c], add, static_cast<float>(sum));
        }
    });
}

template <Work (*read)(const catena_call&)>
catena_status run(catena_ctx* ctx, const catena_call* call) {
    return guarded(ctx, [&] {
        const Work work = read(*call);
        const auto data = [](const catena_tensor* t) {
            return t == nullptr ? nullptr : data_of<float>(*t);
        };
        for (const Map& map : work.maps)
            if (map.to != nullptr)
                make(work.g, map)
                    ->run(ctx, data(map.from), data(map.w), data(map.bias), data(map.to),
                          call->scratch);
        if (const Correlate& c = work.correlate; c.w != nullptr)
            make(work.g, c)->run(ctx, data(c.x), data(c.y), data(c.w), data(c.bias), c.add_bias,
                                 call->scratch);
        if (work.sum != nullptr) sum_channels(ctx, *work.summed, *work.sum, work.add_sum);
    });
}

template <Work (*read)(const catena_call&)>
constexpr catena_kernel of(const char* function, int phase) {
    catena_kernel k = kernel(function, phase, supports<read>, plan<read>, run<read>);
    k.version_max = 2;  // which has cover_all
    return k;
}

constexpr catena_kernel kernels[] = {
    of<convolution>("catena.convolution_2d", CATENA_PHASE_FORWARD),
    of<convolution>("catena.convolution_2d", CATENA_PHASE_BACKWARD),
    of<deconvolution>("catena.deconvolution_2d", CATENA_PHASE_FORWARD),
    of<deconvolution>("catena.deconvolution_2d", CATENA_PHASE_BACKWARD),
    of<filters_gradient>("catena.convolution_2d_grad_w", CATENA_PHASE_FORWARD),
    of<filters_gradient>("catena.convolution_2d_grad_w", CATENA_PHASE_BACKWARD),
};

}  // namespace

constinit const std::span<const catena_kernel> convolution_kernels = kernels;

}  // namespace catena_onednn
