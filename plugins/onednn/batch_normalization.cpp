// batch_normalization and its gradient, and fixed_batch_normalization, some channels at a time.
#include "engine.hpp"

namespace catena_onednn {
namespace {

constexpr auto& fixed_function = "catena.fixed_batch_normalization";

enum Kind { training, fixed, gradient };

struct Spec {
    Kind kind;
    bool add;
    Images x;
    double eps;

    bool operator==(const Spec&) const = default;
};

constexpr std::int64_t block = 16;  // channels of a step, which stand together in the inner layout

void give(catena_tensor* to, bool add, std::int64_t first, const float* from, std::int64_t n) {
    if (to == nullptr) return;
    float* const target = data_of<float>(*to) + first;
    for (std::int64_t i = 0; i < n; ++i) target[i] = add ? target[i] + from[i] : from[i];
}

// The primitive for so many channels of x.
struct Step {
    Step(const Spec& s, std::int64_t width) : channels(width) {
        const Images& x = s.x;
        const memory::dims dims = {x.n, width, x.height, x.width};
        const memory::dims strides = {x.image(), x.plane(), x.width, 1};
        in = {.plain = {dims, memory::data_type::f32, strides},
              .inner = {dims, memory::data_type::f32, memory::format_tag::nChw16c},
              .convert = {}};
        in.make_reader();
        out = in;
        out.make_writer(s.add);
        using Flags = dnnl::normalization_flags;
        const Flags flags = s.kind == fixed ? Flags::use_scale_shift | Flags::use_global_stats
                                            : Flags::use_scale_shift;
        const auto epsilon = static_cast<float>(s.eps);
        const dnnl::batch_normalization_forward::primitive_desc forward(
            {s.kind == fixed ? dnnl::prop_kind::forward_inference
                             : dnnl::prop_kind::forward_training,
             in.inner, epsilon, flags},
            with_scratchpad(), engine());
        op = s.kind != gradient
                 ? Primitive::make<dnnl::batch_normalization_forward>(forward)
                 : Primitive::make<dnnl::batch_normalization_backward>(
                       {{dnnl::prop_kind::backward, in.inner, in.inner, epsilon, flags},
                        with_scratchpad(),
                        engine(),
                        forward});
        vector = {{width}, memory::data_type::f32, memory::format_tag::a};
        pair = {{2, width}, memory::data_type::f32, memory::format_tag::nc};
    }

    std::int64_t channels;
    Operand in, out;
    memory::desc vector, pair;
    Primitive op;
};

class BatchNormalization {
public:
    explicit BatchNormalization(const Spec& s)
        : s_(s),
          steps_((s.x.channels + block - 1) / block),
          step_(s, std::min(block, s.x.channels)),
          last_(s, s.x.channels - (steps_ - 1) * block) {
        x_at_ = place_.add(step_.in.bytes());
        if (s.kind == gradient) gy_at_ = place_.add(step_.in.bytes());
        constexpr std::size_t vector_bytes = block * sizeof(float);
        mean_at_ = place_.add(vector_bytes);
        var_at_ = place_.add(vector_bytes);
        pair_at_ = place_.add(2 * vector_bytes);
        pair_gradient_at_ = place_.add(2 * vector_bytes);
        padding_at_ = place_.add(std::max(step_.op.padding_bytes(), last_.op.padding_bytes()));
    }
    std::size_t scratch_bytes(std::int32_t slots) const { return place_.scratch_bytes(slots); }
    void run(catena_ctx* ctx, const catena_call& call) const {
        const bool backward = s_.kind == gradient;
        place_.for_each(ctx, steps_, call.scratch, [&](std::int64_t i, const auto& mine) {
            const Step& step = i + 1 < steps_ ? step_ : last_;
            const std::int64_t first = i * block, n = step.channels;
            const auto copy = [&](const catena_tensor& from, float* to) {
                std::copy_n(data_of<const float>(from) + first, n, to);
            };
            const auto read = [&](const catena_tensor& from, std::size_t place) {
                const memory inner = view(step.in.inner, mine(place));
                const float* const data = data_of<float>(from) + first * s_.x.plane();
                convert(step.in.convert, view(step.in.plain, data), inner);
                return inner;
            };
            float* const pair = mine(pair_at_);
            copy(*call.x[1], pair);
            if (!backward) copy(*call.x[2], pair + n);
            else std::fill_n(pair + n, n, 0.0F);  // the gradient does not depend on it
            if (s_.kind != training) {
                copy(backward ? *call.y[1] : *call.x[3], mine(mean_at_));
                copy(backward ? *call.y[2] : *call.x[4], mine(var_at_));
            }
            const memory x = read(*call.x[0], x_at_);
            const memory made = backward ? read(*call.gy[0], gy_at_) : x;  // in place of the copy
            std::unordered_map<int, memory> arguments = {
                {DNNL_ARG_SRC, x},
                {DNNL_ARG_MEAN, view(step.vector, mine(mean_at_))},
                {DNNL_ARG_VARIANCE, view(step.vector, mine(var_at_))},
                {DNNL_ARG_SCALE_SHIFT, view(step.pair, pair)}};
            if (backward) {
                arguments.emplace(DNNL_ARG_DIFF_DST, made);
                arguments.emplace(DNNL_ARG_DIFF_SRC, made);
                arguments.emplace(DNNL_ARG_DIFF_SCALE_SHIFT,
                                  view(step.pair, mine(pair_gradient_at_)));
            } else {
                arguments.emplace(DNNL_ARG_DST, made);
            }
            step.op.run(std::move(arguments), mine(padding_at_));
            catena_tensor* const* const results = backward ? call.gx : call.y;
            if (results[0] != nullptr)
                convert(step.out.convert, made,
                        view(step.out.plain, data_of<float>(*results[0]) + first * s_.x.plane()));
            if (s_.kind == fixed) return;
            const float* const gradients = mine(pair_gradient_at_);
            give(results[1], adds(call, 1), first, backward ? gradients : mine(mean_at_), n);
            give(results[2], adds(call, 2), first, backward ? gradients + n : mine(var_at_), n);
        });
    }

private:
    Spec s_;
    std::int64_t steps_;
    Step step_, last_;
    Place place_;
    std::size_t x_at_, gy_at_ = 0, mean_at_, var_at_, pair_at_, pair_gradient_at_, padding_at_;
};

std::int32_t supports(catena_ctx*, const catena_call* call) {
    if (!is_forward(*call) && call->gy[0] == nullptr) return 0;
    return fit(Images(*call->x[0])) ? 1 : 0;
}

std::shared_ptr<const BatchNormalization> make(const catena_call& call) {
    const bool is_fixed = std::string_view(call.function->name) == fixed_function;
    return made_for<BatchNormalization>(Spec{.kind = !is_forward(call) ? gradient
                                                     : is_fixed        ? fixed
                                                                       : training,
                                             .add = adds(call, 0),
                                             .x = Images(*call.x[0]),
                                             .eps = attribute(call, "eps").v.f});
}

constexpr catena_kernel of(const char* function, int phase) {
    return kernel(function, phase, supports, plan_made<make>, run_made<make>, below_portable,
                  Row<float, float>::dtypes);  // of values, and of statistics
}
constexpr catena_kernel kernels[] = {
    of("catena.batch_normalization", CATENA_PHASE_FORWARD),
    of("catena.batch_normalization", CATENA_PHASE_BACKWARD),
    of(fixed_function, CATENA_PHASE_FORWARD),
};

}  // namespace

constinit const std::span<const catena_kernel> batch_normalization_kernels = kernels;

}  // namespace catena_onednn
