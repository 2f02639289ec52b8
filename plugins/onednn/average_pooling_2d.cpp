// average_pooling_2d and its gradient. (Not max_pooling_2d: oneDNN ignores NaN in it, and is slower.)
#include "engine.hpp"

namespace catena_onednn {
namespace {

constexpr auto& pool = "catena.average_pooling_2d";
constexpr auto& spread = "catena.average_pooling_2d_grad";

struct Spec {
    bool to_windows;  // images to windows, or windows' gradients back to images
    bool add;
    Images x, y;
    std::int64_t ky, kx, stride_y, stride_x, pad_y, pad_x;

    bool operator==(const Spec&) const = default;
};

// The forward call of the one and the backward call of the other average; the other two spread.
bool averages(const catena_call& call) {
    return is_forward(call) == (std::string_view(call.function->name) == pool);
}
const catena_tensor* from(const catena_call& call) {
    return is_forward(call) ? call.x[0] : call.gy[0];
}
catena_tensor* to(const catena_call& call) { return is_forward(call) ? call.y[0] : call.gx[0]; }

Spec spec_of(const catena_call& call) {
    const bool to_windows = averages(call);
    const std::int64_t ky = attribute_of_axis(call, "ksize", 0, 1);
    const std::int64_t kx = attribute_of_axis(call, "ksize", 1, 1);
    return {.to_windows = to_windows,
            .add = adds(call, 0),
            .x = Images(to_windows ? *from(call) : *to(call)),
            .y = Images(to_windows ? *to(call) : *from(call)),
            .ky = ky,
            .kx = kx,
            .stride_y = attribute_of_axis(call, "stride", 0, ky),
            .stride_x = attribute_of_axis(call, "stride", 1, kx),
            .pad_y = attribute_of_axis(call, "pad", 0),
            .pad_x = attribute_of_axis(call, "pad", 1)};
}

// Both tensors stay in the caller's layout.
class Averaging {
public:
    explicit Averaging(const Spec& s)
        : s_(s),
          images_(images_of_step(s.x.n, (s.x.image() + s.y.image()) * 4)),
          x_(desc(s.x)),
          y_(desc(s.y)) {
        const memory::dims size = {s.ky, s.kx}, stride = {s.stride_y, s.stride_x},
                           pad = {s.pad_y, s.pad_x};
        constexpr auto average = dnnl::algorithm::pooling_avg_include_padding;
        const dnnl::pooling_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, average, x_, y_, stride, size, pad, pad},
            with_scratchpad(), engine());
        if (s.to_windows) {
            require_fast(forward.impl_info_str());
            pooling_ = Primitive::make<dnnl::pooling_forward>(forward);
        } else {
            const dnnl::pooling_backward::primitive_desc backward(
                {average, x_, y_, stride, size, pad, pad}, with_scratchpad(), engine(), forward);
            require_fast(backward.impl_info_str());
            pooling_ = Primitive::make<dnnl::pooling_backward>(backward);
        }
        sum_at_ = place_.add(s.add ? (s.to_windows ? y_ : x_).get_size() : 0);
        padding_at_ = place_.add(pooling_.padding_bytes());
    }
    std::size_t scratch_bytes(std::int32_t slots) const { return place_.scratch_bytes(slots); }
    void run(catena_ctx* ctx, const catena_call& call) const {
        const std::int64_t from_step = images_ * (s_.to_windows ? s_.x : s_.y).image();
        const std::int64_t to_step = images_ * (s_.to_windows ? s_.y : s_.x).image();
        place_.for_each(ctx, s_.x.n / images_, call.scratch, [&](std::int64_t i, const auto& mine) {
            const float* const source = data_of<float>(*from(call)) + i * from_step;
            float* const target = data_of<float>(*to(call)) + i * to_step;
            float* const made = s_.add ? mine(sum_at_) : target;
            if (s_.to_windows)
                pooling_.run({{DNNL_ARG_SRC, view(x_, source)}, {DNNL_ARG_DST, view(y_, made)}},
                             mine(padding_at_));
            else
                pooling_.run(
                    {{DNNL_ARG_DIFF_DST, view(y_, source)}, {DNNL_ARG_DIFF_SRC, view(x_, made)}},
                    mine(padding_at_));
            for (std::int64_t k = 0; s_.add && k < to_step; ++k) target[k] += made[k];
        });
    }

private:
    memory::desc desc(const Images& x) const {
        return {{images_, x.channels, x.height, x.width},
                memory::data_type::f32,
                memory::format_tag::nchw};
    }

    Spec s_;
    std::int64_t images_;  // of a step
    memory::desc x_, y_;
    Primitive pooling_;
    Place place_;
    std::size_t sum_at_, padding_at_;
};

std::int32_t supports(catena_ctx*, const catena_call* call) {
    if (!is_forward(*call) && (call->gy[0] == nullptr || call->gx[0] == nullptr)) return 0;
    const Spec s = spec_of(*call);
    return fit(s.x) && fit(s.y) && s.pad_y < s.ky && s.pad_x < s.kx ? 1 : 0;
}

// Many narrow images to windows, measured (README.md): the portable kernels' rows are too short.
std::int32_t faster(catena_ctx* ctx, const catena_call* call) {
    if (supports(ctx, call) == 0) return 0;
    constexpr std::int64_t most_width = 12;
    constexpr std::int64_t least_planes = 2048;
    const Spec s = spec_of(*call);
    return s.x.width <= most_width && s.y.width > 1 && s.x.n * s.x.channels >= least_planes ? 1 : 0;
}

std::shared_ptr<const Averaging> make(const catena_call& call) {
    return made_for<Averaging>(spec_of(call));
}

constexpr catena_kernel first(const char* function, int phase) {
    return kernel(function, phase, faster, plan_made<make>, run_made<make>);
}
constexpr catena_kernel last(const char* function, int phase) {
    return kernel(function, phase, supports, plan_made<make>, run_made<make>, below_portable);
}
constexpr catena_kernel kernels[] = {
    first(pool, CATENA_PHASE_FORWARD),  first(spread, CATENA_PHASE_BACKWARD),
    last(pool, CATENA_PHASE_FORWARD),   last(pool, CATENA_PHASE_BACKWARD),
    last(spread, CATENA_PHASE_FORWARD), last(spread, CATENA_PHASE_BACKWARD),
};

}  // namespace

constinit const std::span<const catena_kernel> pooling_kernels = kernels;

}  // namespace catena_onednn
