// local_response_normalization: on AVX-512 oneDNN has code for five channels to the power 0.75.
#include <bit>

#include "image_steps.hpp"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

struct Rule {
    Images x;
    std::int64_t size;  // channels of a sum
    double k, alpha, beta;
};

// In the blocked layout, within the cache of a thread. oneDNN's backward needs what its forward
// leaves: it is done again, in less time than to keep it.
class Normalization {
public:
    static std::shared_ptr<const Normalization> get(const Rule& r, bool backward, bool add) {
        static auto* const cache = new Cache<Normalization>;
        const auto bits = [](double v) { return std::bit_cast<std::int64_t>(v); };
        return cache->get({backward, add, r.x.n, r.x.channels, r.x.height, r.x.width, r.size,
                           bits(r.k), bits(r.alpha), bits(r.beta)},
                          [&] { return std::make_shared<const Normalization>(r, backward, add); });
    }

    Normalization(const Rule& r, bool backward, bool add)
        : backward_(backward),
          image_(r.x.image()),
          images_(images_of_step(r.x.n, r.x.image() * 16)),
          steps_(r.x.n / images_) {
        const memory::dims dims = {images_, r.x.channels, r.x.height, r.x.width};
        x_ = {.plain = {dims, memory::data_type::f32, memory::format_tag::nchw},
              .inner = {dims, memory::data_type::f32, memory::format_tag::nChw16c},
              .convert = {}};
        x_.make_reader();
        out_ = x_;
        out_.make_writer(add);
        constexpr auto across = dnnl::algorithm::lrn_across_channels;
        const auto alpha =
            static_cast<float>(r.alpha * static_cast<double>(r.size));  // oneDNN divides
        const auto beta = static_cast<float>(r.beta);
        const auto k = static_cast<float>(r.k);
        const dnnl::lrn_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, across, x_.inner, r.size, alpha, beta, k},
            with_scratchpad(), engine());
        forward_op_ = dnnl::lrn_forward(forward);
        workspace_ = forward.workspace_desc();
        padding_ = forward.scratchpad_desc();
        std::size_t padding = padding_.get_size();
        if (backward) {
            const dnnl::lrn_backward::primitive_desc back(
                {across, x_.inner, x_.inner, r.size, alpha, beta, k}, with_scratchpad(), engine(),
                forward);
            backward_op_ = dnnl::lrn_backward(back);
            backward_padding_ = back.scratchpad_desc();
            padding = std::max(padding, backward_padding_.get_size());
            gy_at_ = place_.add(x_.bytes());
        }
        x_at_ = place_.add(x_.bytes());
        y_at_ = place_.add(x_.bytes());
        workspace_at_ = place_.add(workspace_.get_size());
        padding_at_ = place_.add(padding);
    }
    std::size_t scratch_bytes(catena_ctx* ctx) const { return place_.scratch_bytes(ctx); }
    // gy is null forwards.
    void run(catena_ctx* ctx, const float* x, const float* gy, float* out, void* scratch) const {
        place_.for_each(ctx, steps_, scratch, [&](std::int64_t i, const auto& mine) {
            const memory inner_x = view(x_.inner, mine(x_at_));
            const memory inner_y = view(x_.inner, mine(y_at_));
            const memory workspace = view(workspace_, mine(workspace_at_));
            const std::int64_t first = i * images_ * image_;
            convert(x_.convert, view(x_.plain, x + first), inner_x);
            forward_op_.execute(stream(),
                                {{DNNL_ARG_SRC, inner_x},
                                 {DNNL_ARG_DST, inner_y},
                                 {DNNL_ARG_WORKSPACE, workspace},
                                 {DNNL_ARG_SCRATCHPAD, view(padding_, mine(padding_at_))}});
            if (backward_) {
                const memory inner_gy = view(x_.inner, mine(gy_at_));
                convert(x_.convert, view(x_.plain, gy + first), inner_gy);
                backward_op_.execute(
                    stream(), {{DNNL_ARG_SRC, inner_x},
                               {DNNL_ARG_DIFF_DST, inner_gy},
                               {DNNL_ARG_DIFF_SRC, inner_y},
                               {DNNL_ARG_WORKSPACE, workspace},
                               {DNNL_ARG_SCRATCHPAD, view(backward_padding_, mine(padding_at_))}});
            }
            convert(out_.convert, inner_y, view(out_.plain, out + first));
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
    Place place_;
    std::size_t x_at_ = 0, y_at_ = 0, gy_at_ = 0, workspace_at_ = 0, padding_at_ = 0;
};

std::int32_t supports(catena_ctx*, const catena_call* call) {
    if (call->phase == CATENA_PHASE_BACKWARD && (call->gy[0] == nullptr || call->gx[0] == nullptr))
        return 0;
    return fit(Images(*call->x[0])) ? 1 : 0;
}

std::shared_ptr<const Normalization> make(const catena_call& call) {
    const Rule rule = {.x = Images(*call.x[0]),
                       .size = attribute(call, "n").v.i / 2 * 2 + 1,
                       .k = attribute(call, "k").v.f,
                       .alpha = attribute(call, "alpha").v.f,
                       .beta = attribute(call, "beta").v.f};
    return Normalization::get(rule, call.phase == CATENA_PHASE_BACKWARD,
                              call.req[0] == CATENA_REQ_ADD);
}

catena_status run(catena_ctx* ctx, const catena_call* call) {
    return guarded(ctx, [&] {
        const bool backward = call->phase == CATENA_PHASE_BACKWARD;
        make(*call)->run(ctx, data_of<const float>(*call->x[0]),
                         backward ? data_of<const float>(*call->gy[0]) : nullptr,
                         data_of<float>(backward ? *call->gx[0] : *call->y[0]), call->scratch);
    });
}

constexpr catena_kernel of(int phase) {
    return kernel("catena.local_response_normalization", phase, supports, plan_place<make>, run,
                  below_portable);
}

constexpr catena_kernel kernels[] = {of(CATENA_PHASE_FORWARD), of(CATENA_PHASE_BACKWARD)};

}  // namespace

constinit const std::span<const catena_kernel> local_response_normalization_kernels = kernels;

}  // namespace catena_onednn
