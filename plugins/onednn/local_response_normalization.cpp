// local_response_normalization of five channels to the power 0.75, which oneDNN has code for.
#include <bit>
#include <climits>

#include "image_steps.hpp"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

struct Rule {
    std::int64_t n, channels, height, width;
    double k, alpha;

    std::int64_t image() const { return channels * height * width; }
};

constexpr std::int64_t reach = 2;  // channels on either side
constexpr double beta = 0.75;
constexpr std::int64_t block = 16;  // channels that stand together

// In the blocked layout, within the cache of a thread. oneDNN's backward needs what its forward
// leaves: it is done again, in less time than to keep it.
class Normalization {
public:
    static std::shared_ptr<const Normalization> get(const Rule& r, bool backward, bool add) {
        static auto* const cache = new Cache<Normalization>;
        return cache->get({backward, add, r.n, r.channels, r.height, r.width,
                           std::bit_cast<std::int64_t>(r.k), std::bit_cast<std::int64_t>(r.alpha)},
                          [&] { return std::make_shared<const Normalization>(r, backward, add); });
    }

    Normalization(const Rule& r, bool backward, bool add)
        : backward_(backward),
          image_(r.image()),
          images_(images_of_step(r.n, r.image() * 16)),
          steps_(r.n / images_) {
        const memory::dims dims = {images_, r.channels, r.height, r.width};
        x_ = {.plain = {dims, memory::data_type::f32, memory::format_tag::nchw},
              .inner = {dims, memory::data_type::f32, memory::format_tag::nChw16c},
              .convert = {}};
        x_.make_reader();
        out_ = x_;
        out_.make_writer(add);
        constexpr auto across = dnnl::algorithm::lrn_across_channels;
        constexpr std::int64_t size = 2 * reach + 1;
        const auto alpha = static_cast<float>(r.alpha * size);  // oneDNN divides it by the size
        const auto k = static_cast<float>(r.k);
        const dnnl::lrn_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, across, x_.inner, size, alpha,
             static_cast<float>(beta), k},
            with_scratchpad(), engine());
        require_fast(forward.impl_info_str());
        forward_op_ = dnnl::lrn_forward(forward);
        workspace_ = forward.workspace_desc();
        padding_ = forward.scratchpad_desc();
        std::size_t padding = padding_.get_size();
        if (backward) {
            const dnnl::lrn_backward::primitive_desc back(
                {across, x_.inner, x_.inner, size, alpha, static_cast<float>(beta), k},
                with_scratchpad(), engine(), forward);
            require_fast(back.impl_info_str());
            backward_op_ = dnnl::lrn_backward(back);
            backward_padding_ = back.scratchpad_desc();
            padding = std::max(padding, backward_padding_.get_size());
            gy_at_ = own_.add(x_.bytes());
        }
        x_at_ = own_.add(x_.bytes());
        y_at_ = own_.add(x_.bytes());
        workspace_at_ = own_.add(workspace_.get_size());
        padding_at_ = own_.add(padding);
    }
    std::size_t scratch_bytes(std::int32_t slots) const {
        return static_cast<std::size_t>(slots) * own_.size();
    }
    // gy is null forwards.
    void run(catena_ctx* ctx, const float* x, const float* gy, float* out, void* scratch) const {
        parallel(ctx, steps_, [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
            char* const own = at<char>(scratch, static_cast<std::size_t>(slot) * own_.size());
            const memory inner_x = view(x_.inner, own + x_at_);
            const memory inner_y = view(x_.inner, own + y_at_);
            const memory inner_gy = view(x_.inner, own + gy_at_);
            const memory workspace = view(workspace_, own + workspace_at_);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t first = i * images_ * image_;
                convert(x_.convert, view(x_.plain, x + first), inner_x);
                forward_op_.execute(stream(),
                                    {{DNNL_ARG_SRC, inner_x},
                                     {DNNL_ARG_DST, inner_y},
                                     {DNNL_ARG_WORKSPACE, workspace},
                                     {DNNL_ARG_SCRATCHPAD, view(padding_, own + padding_at_)}});
                if (backward_) {
                    convert(x_.convert, view(x_.plain, gy + first), inner_gy);
                    backward_op_.execute(stream(), {{DNNL_ARG_SRC, inner_x},
                                                    {DNNL_ARG_DIFF_DST, inner_gy},
                                                    {DNNL_ARG_DIFF_SRC, inner_y},
                                                    {DNNL_ARG_WORKSPACE, workspace},
                                                    {DNNL_ARG_SCRATCHPAD,
                                                     view(backward_padding_, own + padding_at_)}});
                }
                convert(out_.convert, inner_y, view(out_.plain, out + first));
            }
        });
    }

private:
    bool backward_;
    std::int64_t image_;
    std::int64_t images_;  // of a step
    std::int64_t steps_;
    Operand x_, out_;
    memory::desc workspace_, padding_, backward_padding_;
    dnnl::primitive forward_op_, backward_op_;
    Layout own_;
    std::size_t x_at_ = 0, y_at_ = 0, gy_at_ = 0, workspace_at_ = 0, padding_at_ = 0;
};

Rule rule(const catena_call& call) {
    const Shape x = shape_of(*call.x[0]);
    Rule r = {.n = x[0],
              .channels = x[1],
              .height = x.size() > 2 ? x[2] : 1,
              .width = 1,
              .k = attribute(call, "k").v.f,
              .alpha = attribute(call, "alpha").v.f};
    for (std::size_t i = 3; i < x.size(); ++i) r.width *= x[i];
    return r;
}

std::int32_t supports(catena_ctx*, const catena_call* call) {
    constexpr std::int64_t least_image = 2048;  // calling primitives costs more than smaller ones
    if (call->phase == CATENA_PHASE_BACKWARD && (call->gy[0] == nullptr || call->gx[0] == nullptr))
        return 0;
    if (attribute(*call, "n").v.i / 2 != reach || attribute(*call, "beta").v.f != beta) return 0;
    const Rule r = rule(*call);
    const std::int64_t sizes[] = {r.n, r.channels, r.height, r.width};
    if (std::ranges::min(sizes) < 1 || std::ranges::max(sizes) > INT_MAX) return 0;
    return r.channels % block == 0 && r.image() >= least_image ? 1 : 0;
}

std::shared_ptr<const Normalization> make(const catena_call& call) {
    return Normalization::get(rule(call), call.phase == CATENA_PHASE_BACKWARD,
                              call.req[0] == CATENA_REQ_ADD);
}

catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) {
    return planned(ctx, call,
                   [&] { plan->scratch_bytes = make(*call)->scratch_bytes(host().slots(ctx)); });
}

catena_status run(catena_ctx* ctx, const catena_call* call) {
    return guarded(ctx, call->function->name, [&] {
        const bool backward = call->phase == CATENA_PHASE_BACKWARD;
        make(*call)->run(ctx, data_of<const float>(*call->x[0]),
                         backward ? data_of<const float>(*call->gy[0]) : nullptr,
                         data_of<float>(backward ? *call->gx[0] : *call->y[0]), call->scratch);
    });
}

constexpr catena_kernel kernels[] = {
    kernel("catena.local_response_normalization", CATENA_PHASE_FORWARD, supports, plan, run),
    kernel("catena.local_response_normalization", CATENA_PHASE_BACKWARD, supports, plan, run),
};

}  // namespace

constinit const std::span<const catena_kernel> normalization_kernels = kernels;

}  // namespace catena_onednn
