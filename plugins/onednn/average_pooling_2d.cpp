// average_pooling_2d and its gradient. (Not max_pooling_2d: oneDNN's passes over NaN, and is slower.)
#include "image_steps.hpp"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

using Dims = memory::dims;

struct Windows {
    std::int64_t n, channels, height, width, oh, ow;
    std::int64_t ky, kx, stride_y, stride_x, pad_y, pad_x;

    std::int64_t x_image() const { return channels * height * width; }
    std::int64_t y_image() const { return channels * oh * ow; }
};

// Both tensors lie as they are: images to windows, or windows' gradients back to images.
class Averaging {
public:
    enum Direction { forwards, backwards };
    static std::shared_ptr<const Averaging> get(const Windows& w, Direction direction, bool add) {
        static auto* const cache = new Cache<Averaging>;
        return cache->get({direction, add, w.n, w.channels, w.height, w.width, w.oh, w.ow, w.ky,
                           w.kx, w.stride_y, w.stride_x, w.pad_y, w.pad_x},
                          [&] { return std::make_shared<const Averaging>(w, direction, add); });
    }

    Averaging(const Windows& w, Direction direction, bool add)
        : direction_(direction),
          add_(add),
          from_image_(direction == forwards ? w.x_image() : w.y_image()),
          to_image_(direction == forwards ? w.y_image() : w.x_image()),
          images_(images_of_step(w.n, (w.x_image() + w.y_image()) * 4)),
          steps_(w.n / images_) {
        const auto desc = [&](std::int64_t height, std::int64_t width) -> memory::desc {
            return {{images_, w.channels, height, width},
                    memory::data_type::f32,
                    memory::format_tag::nchw};
        };
        x_ = desc(w.height, w.width);
        y_ = desc(w.oh, w.ow);
        const Dims size = {w.ky, w.kx};
        const Dims stride = {w.stride_y, w.stride_x};
        const Dims pad = {w.pad_y, w.pad_x};
        constexpr auto average = dnnl::algorithm::pooling_avg_include_padding;
        const dnnl::pooling_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, average, x_, y_, stride, size, pad, pad},
            with_scratchpad(), engine());
        const char* implementation = forward.impl_info_str();
        if (direction == forwards) {
            pooling_ = dnnl::pooling_forward(forward);
            padding_ = forward.scratchpad_desc();
        } else {
            const dnnl::pooling_backward::primitive_desc backward(
                {average, x_, y_, stride, size, pad, pad}, with_scratchpad(), engine(), forward);
            implementation = backward.impl_info_str();
            pooling_ = dnnl::pooling_backward(backward);
            padding_ = backward.scratchpad_desc();
        }
        require_fast(implementation);
        sum_at_ = place_.add(add ? static_cast<std::size_t>(images_ * to_image_) * 4 : 0);
        padding_at_ = place_.add(padding_.get_size());
    }
    std::size_t scratch_bytes(catena_ctx* ctx) const { return place_.scratch_bytes(ctx); }
    void run(catena_ctx* ctx, const float* from, float* to, void* scratch) const {
        place_.for_each(ctx, steps_, scratch, [&](std::int64_t i, const auto& mine) {
            float* const target = to + i * images_ * to_image_;
            float* const made = add_ ? mine(sum_at_) : target;
            const float* const source = from + i * images_ * from_image_;
            const memory padding = view(padding_, mine(padding_at_));
            if (direction_ == forwards)
                pooling_.execute(stream(), {{DNNL_ARG_SRC, view(x_, source)},
                                            {DNNL_ARG_DST, view(y_, made)},
                                            {DNNL_ARG_SCRATCHPAD, padding}});
            else
                pooling_.execute(stream(), {{DNNL_ARG_DIFF_DST, view(y_, source)},
                                            {DNNL_ARG_DIFF_SRC, view(x_, made)},
                                            {DNNL_ARG_SCRATCHPAD, padding}});
            for (std::int64_t k = 0; add_ && k < images_ * to_image_; ++k) target[k] += made[k];
        });
    }

private:
    Direction direction_;
    bool add_;
    std::int64_t from_image_, to_image_;
    std::int64_t images_;  // of a step
    std::int64_t steps_;
    memory::desc x_, y_, padding_;
    dnnl::primitive pooling_;
    Place place_;
    std::size_t sum_at_, padding_at_;
};

// The forward call of average_pooling_2d and the backward call of its gradient average; the other two
// spread.
struct Work {
    Windows windows;
    Averaging::Direction direction;
    const catena_tensor* from;
    catena_tensor* to;
    bool add;
};

template <Averaging::Direction forward>
Work read(const catena_call& call) {
    const bool is_forward = call.phase == CATENA_PHASE_FORWARD;
    Work work;
    work.direction =
        is_forward == (forward == Averaging::forwards) ? Averaging::forwards : Averaging::backwards;
    work.from = is_forward ? call.x[0] : call.gy[0];
    work.to = is_forward ? call.y[0] : call.gx[0];
    work.add = call.req[0] == CATENA_REQ_ADD;
    const bool to_windows = work.direction == Averaging::forwards;
    const Shape x = shape_of(to_windows ? *work.from : *work.to);
    const Shape y = shape_of(to_windows ? *work.to : *work.from);
    const std::int64_t ky = attribute_of_axis(call, "ksize", 0, 1);
    const std::int64_t kx = attribute_of_axis(call, "ksize", 1, 1);
    work.windows = {.n = x[0],
                    .channels = x[1],
                    .height = x[2],
                    .width = x[3],
                    .oh = y[2],
                    .ow = y[3],
                    .ky = ky,
                    .kx = kx,
                    .stride_y = attribute_of_axis(call, "stride", 0, ky),
                    .stride_x = attribute_of_axis(call, "stride", 1, kx),
                    .pad_y = attribute_of_axis(call, "pad", 0),
                    .pad_x = attribute_of_axis(call, "pad", 1)};
    return work;
}

template <Averaging::Direction forward>
std::int32_t supports(catena_ctx*, const catena_call* call) {
    const bool backward = call->phase == CATENA_PHASE_BACKWARD;
    if (backward && (call->gy[0] == nullptr || call->gx[0] == nullptr)) return 0;
    const Windows w = read<forward>(*call).windows;
    const bool fits = fit({w.n, w.channels, w.height, w.width, w.oh, w.ow});
    return fits && w.pad_y < w.ky && w.pad_x < w.kx ? 1 : 0;
}

// Many narrow images to windows, measured (README.md): the portable kernels' rows are too short.
template <Averaging::Direction forward>
std::int32_t faster(catena_ctx* ctx, const catena_call* call) {
    if (supports<forward>(ctx, call) == 0) return 0;
    constexpr std::int64_t most_width = 12;
    constexpr std::int64_t least_planes = 2048;
    const Windows w = read<forward>(*call).windows;
    return w.width <= most_width && w.ow > 1 && w.n * w.channels >= least_planes ? 1 : 0;
}

template <Averaging::Direction forward>
std::shared_ptr<const Averaging> make(const catena_call& call) {
    const Work work = read<forward>(call);
    return Averaging::get(work.windows, work.direction, work.add);
}

template <Averaging::Direction forward>
catena_status run(catena_ctx* ctx, const catena_call* call) {
    return guarded(ctx, [&] {
        const Work work = read<forward>(*call);
        Averaging::get(work.windows, work.direction, work.add)
            ->run(ctx, data_of<float>(*work.from), data_of<float>(*work.to), call->scratch);
    });
}

template <Averaging::Direction forward>
constexpr catena_kernel first(const char* function, int phase) {
    return kernel(function, phase, faster<forward>, plan_place<make<forward>>, run<forward>);
}
template <Averaging::Direction forward>
constexpr catena_kernel last(const char* function, int phase) {
    return kernel(function, phase, supports<forward>, plan_place<make<forward>>, run<forward>,
                  below_portable);
}

constexpr auto& pool = "catena.average_pooling_2d";
constexpr auto& spread = "catena.average_pooling_2d_grad";
constexpr catena_kernel kernels[] = {
    first<Averaging::forwards>(pool, CATENA_PHASE_FORWARD),
    first<Averaging::backwards>(spread, CATENA_PHASE_BACKWARD),
    last<Averaging::forwards>(pool, CATENA_PHASE_FORWARD),
    last<Averaging::forwards>(pool, CATENA_PHASE_BACKWARD),
    last<Averaging::backwards>(spread, CATENA_PHASE_FORWARD),
    last<Averaging::backwards>(spread, CATENA_PHASE_BACKWARD),
};

}  // namespace

constinit const std::span<const catena_kernel> pooling_kernels = kernels;

}  // namespace catena_onednn
