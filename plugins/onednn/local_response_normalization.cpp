// local_response_normalization: on AVX-512 oneDNN has code for five channels to the power 0.75.
#include "engine.hpp"

namespace catena_onednn {
namespace {

struct Spec {
    bool backward, add;
    Images x;
    std::int64_t size;  // channels of a sum
    double k, alpha, beta;

    bool operator==(const Spec&) const = default;
};

// In the blocked layout, within the cache of a thread. oneDNN's backward needs results of its forward.
// They are computed again, which takes less time than to keep them.
class Normalization {
public:
    explicit Normalization(const Spec& s)
        : s_(s), images_(images_of_step(s.x.n, s.x.image() * 16)) {
        const memory::dims dims = {images_, s.x.channels, s.x.height, s.x.width};
        x_ = {.plain = {dims, memory::data_type::f32, memory::format_tag::nchw},
              .inner = {dims, memory::data_type::f32, memory::format_tag::nChw16c},
              .convert = {}};
        x_.make_reader();
        out_ = x_;
        out_.make_writer(s.add);
        constexpr auto across = dnnl::algorithm::lrn_across_channels;
        const auto size = static_cast<double>(s.size);
        const auto alpha = static_cast<float>(s.alpha * size);  // oneDNN divides by the size
        const auto beta = static_cast<float>(s.beta), k = static_cast<float>(s.k);
        const dnnl::lrn_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, across, x_.inner, s.size, alpha, beta, k},
            with_scratchpad(), engine());
        forward_ = Primitive::make<dnnl::lrn_forward>(forward);
        workspace_ = forward.workspace_desc();
        std::size_t padding = forward_.padding_bytes();
        if (s.backward) {
            backward_ = Primitive::make<dnnl::lrn_backward>(
                {{across, x_.inner, x_.inner, s.size, alpha, beta, k},
                 with_scratchpad(),
                 engine(),
                 forward});
            padding = std::max(padding, backward_.padding_bytes());
            gy_at_ = place_.add(x_.bytes());
        }
        x_at_ = place_.add(x_.bytes());
        y_at_ = place_.add(x_.bytes());
        workspace_at_ = place_.add(workspace_.get_size());
        padding_at_ = place_.add(padding);
    }
    std::size_t scratch_bytes(std::int32_t slots) const { return place_.scratch_bytes(slots); }
    void run(catena_ctx* ctx, const catena_call& call) const {
        place_.for_each(ctx, s_.x.n / images_, call.scratch, [&](std::int64_t i, const auto& mine) {
            const std::int64_t first = i * images_ * s_.x.image();
            const auto read = [&](const catena_tensor& t, std::size_t place) {
                const memory inner = view(x_.inner, mine(place));
                convert(x_.convert, view(x_.plain, data_of<float>(t) + first), inner);
                return inner;
            };
            const memory x = read(*call.x[0], x_at_), y = view(x_.inner, mine(y_at_));
            const memory workspace = view(workspace_, mine(workspace_at_));
            forward_.run({{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, workspace}},
                         mine(padding_at_));
            if (s_.backward)
                backward_.run({{DNNL_ARG_SRC, x},
                               {DNNL_ARG_DIFF_DST, read(*call.gy[0], gy_at_)},
                               {DNNL_ARG_DIFF_SRC, y},
                               {DNNL_ARG_WORKSPACE, workspace}},
                              mine(padding_at_));
            const catena_tensor& out = s_.backward ? *call.gx[0] : *call.y[0];
            convert(out_.convert, y, view(out_.plain, data_of<float>(out) + first));
        });
    }

private:
    Spec s_;
    std::int64_t images_;  // of a step
    Operand x_, out_;
    memory::desc workspace_;
    Primitive forward_, backward_;
    Place place_;
    std::size_t x_at_ = 0, y_at_ = 0, gy_at_ = 0, workspace_at_ = 0, padding_at_ = 0;
};

std::int32_t supports(catena_ctx*, const catena_call* call) {
    if (!is_forward(*call) && (call->gy[0] == nullptr || call->gx[0] == nullptr)) return 0;
    return fit(Images(*call->x[0])) ? 1 : 0;
}

std::shared_ptr<const Normalization> make(const catena_call& call) {
    return made_for<Normalization>(Spec{.backward = !is_forward(call),
                                        .add = adds(call, 0),
                                        .x = Images(*call.x[0]),
                                        .size = attribute(call, "n").v.i / 2 * 2 + 1,
                                        .k = attribute(call, "k").v.f,
                                        .alpha = attribute(call, "alpha").v.f,
                                        .beta = attribute(call, "beta").v.f});
}

constexpr catena_kernel of(int phase) {
    return kernel("catena.local_response_normalization", phase, supports, plan_made<make>,
                  run_made<make>, below_portable);
}
constexpr catena_kernel kernels[] = {of(CATENA_PHASE_FORWARD), of(CATENA_PHASE_BACKWARD)};

}  // namespace

constinit const std::span<const catena_kernel> local_response_normalization_kernels = kernels;

}  // namespace catena_onednn
