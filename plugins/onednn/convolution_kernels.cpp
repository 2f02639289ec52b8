// convolution_2d, deconvolution_2d and the gradient for filters: each is one or two of three products.
#include <algorithm>

#include "convolution.hpp"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

using Step = ConvolutionStep;
using Read = ConvolutionCall (*)(const catena_call&);

// What the portable kernels do not do as fast, measured: README.md has the numbers.
constexpr double least_work = 1e6;      // smaller ones are over before a primitive is called
constexpr double least_fullness = 0.7;  // of the channels that oneDNN computes
constexpr double least_reuse = 64;      // multiply-adds for each number that a 1x1 filter moves

double fullness(std::int64_t channels) {
    return static_cast<double>(channels) / static_cast<double>((channels + 15) / 16 * 16);
}

bool worth_it(const Geometry& g) {
    if (!g.is_common()) return false;
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

template <Read read>
std::int32_t supports(catena_ctx*, const catena_call* call) {
    return outcome(*call) != nullptr && worth_it(read(*call).sizes) ? 1 : 0;
}

// A convolution's gradient for the bias comes with that for the filters.
bool has_bias_sum(const ConvolutionCall& work, const Step& s) {
    return s.product == ConvolutionProduct::filter && work.sum != nullptr && work.summed == s.y;
}
std::shared_ptr<const Mapping> mapping(const ConvolutionCall& work, const Step& s) {
    const bool forward = s.product == ConvolutionProduct::forward;
    return Mapping::get(work.sizes, forward ? Mapping::forwards : Mapping::backwards,
                        s.bias != nullptr, s.add);
}
std::shared_ptr<const Correlation> correlation(const ConvolutionCall& work, const Step& s) {
    return Correlation::get(work.sizes, has_bias_sum(work, s), s.add);
}

template <Read read>
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) {
    return planned(ctx, [&] {
        const ConvolutionCall work = read(*call);
        const std::int32_t slots = host().slots(ctx);
        std::size_t bytes = 0;
        for (const Step& s : work.products())
            bytes = std::max(bytes, s.product == ConvolutionProduct::filter
                                        ? correlation(work, s)->scratch_bytes(slots)
                                        : mapping(work, s)->scratch_bytes(slots));
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

template <Read read>
catena_status run(catena_ctx* ctx, const catena_call* call) {
    return guarded(ctx, [&] {
        ConvolutionCall work = read(*call);
        const auto data = [](const catena_tensor* t) {
            return t == nullptr ? nullptr : data_of<float>(*t);
        };
        for (const Step& s : work.products()) {
            float *const x = data(s.x), *const w = data(s.w), *const y = data(s.y);
            if (s.product == ConvolutionProduct::forward) {
                mapping(work, s)->run(ctx, x, w, data(s.bias), y, call->scratch);
            } else if (s.product == ConvolutionProduct::data) {
                mapping(work, s)->run(ctx, y, w, data(s.bias), x, call->scratch);
            } else {
                float* const bias = has_bias_sum(work, s) ? data(work.sum) : nullptr;
                correlation(work, s)->run(ctx, x, y, w, bias, work.add_sum, call->scratch);
                if (bias != nullptr) work.sum = nullptr;
            }
        }
        if (work.sum != nullptr) sum_channels(ctx, *work.summed, *work.sum, work.add_sum);
    });
}

template <Read read>
constexpr catena_kernel of(const char* function, int phase) {
    catena_kernel k = kernel(function, phase, supports<read>, plan<read>, run<read>);
    k.version_max = 2;  // which has cover_all
    return k;
}

constexpr catena_kernel kernels[] = {
    of<convolution_2d>("catena.convolution_2d", CATENA_PHASE_FORWARD),
    of<convolution_2d>("catena.convolution_2d", CATENA_PHASE_BACKWARD),
    of<deconvolution_2d>("catena.deconvolution_2d", CATENA_PHASE_FORWARD),
    of<deconvolution_2d>("catena.deconvolution_2d", CATENA_PHASE_BACKWARD),
    of<convolution_2d_grad_w>("catena.convolution_2d_grad_w", CATENA_PHASE_FORWARD),
    of<convolution_2d_grad_w>("catena.convolution_2d_grad_w", CATENA_PHASE_BACKWARD),
};

}  // namespace

constinit const std::span<const catena_kernel> convolution_kernels = kernels;

}  // namespace catena_onednn
