// batch_normalization and its gradient, and fixed_batch_normalization, some channels at a time.
#include <bit>

#include "image_steps.hpp"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

enum Kind { training, fixed, gradient };

constexpr std::int64_t block = 16;  // channels of a step, which stand together in the inner layout

// What a call has; of the rest, null.
struct Arguments {
    const float *x, *gamma, *beta, *mean, *var, *gy;
    catena_tensor *out, *first, *second;  // y, mean and var; or the gradients
    const std::uint8_t* req;
};

void give(catena_tensor* to, bool add, std::int64_t first, const float* from, std::int64_t n) {
    if (to == nullptr) return;
    float* const target = data_of<float>(*to) + first;
    for (std::int64_t i = 0; i < n; ++i) target[i] = add ? target[i] + from[i] : from[i];
}

// The primitive for so many channels of x.
struct Step {
    Step(const Images& x, std::int64_t width, double eps, Kind kind, bool add) : channels(width) {
        const memory::dims dims = {x.n, width, x.height, x.width};
        const memory::dims strides = {x.image(), x.plane(), x.width, 1};
        in = {.plain = {dims, memory::data_type::f32, strides},
              .inner = {dims, memory::data_type::f32, memory::format_tag::nChw16c},
              .convert = {}};
        in.make_reader();
        out = in;
        out.make_writer(add);
        using Flags = dnnl::normalization_flags;
        const Flags flags = kind == fixed ? Flags::use_scale_shift | Flags::use_global_stats
                                          : Flags::use_scale_shift;
        const auto epsilon = static_cast<float>(eps);
        const dnnl::batch_normalization_forward::primitive_desc forward(
            {kind == fixed ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training,
             in.inner, epsilon, flags},
            with_scratchpad(), engine());
        if (kind == gradient) {
            const dnnl::batch_normalization_backward::primitive_desc backward(
                {dnnl::prop_kind::backward, in.inner, in.inner, epsilon, flags}, with_scratchpad(),
                engine(), forward);
            op = dnnl::batch_normalization_backward(backward);
            padding = backward.scratchpad_desc();
        } else {
            op = dnnl::batch_normalization_forward(forward);
            padding = forward.scratchpad_desc();
        }
        vector = {{width}, memory::data_type::f32, memory::format_tag::a};
        pair = {{2, width}, memory::data_type::f32, memory::format_tag::nc};
    }

    std::int64_t channels;
    Operand in, out;
    memory::desc vector, pair, padding;
    dnnl::primitive op;
};

class BatchNormalization {
public:
    static std::shared_ptr<const BatchNormalization> get(const Images& x, double eps, Kind kind,
                                                         bool add) {
        static auto* const cache = new Cache<BatchNormalization>;
        return cache->get(
            {kind, add, x.n, x.channels, x.height, x.width, std::bit_cast<std::int64_t>(eps)},
            [&] { return std::make_shared<const BatchNormalization>(x, eps, kind, add); });
    }

    BatchNormalization(const Images& x, double eps, Kind kind, bool add)
        : kind_(kind),
          plane_(x.plane()),
          steps_((x.channels + block - 1) / block),
          step_(x, std::min(block, x.channels), eps, kind, add),
          last_(x, x.channels - (steps_ - 1) * block, eps, kind, add) {
        x_at_ = place_.add(step_.in.bytes());
        if (kind == gradient) gy_at_ = place_.add(step_.in.bytes());
        constexpr std::size_t vector_bytes = block * sizeof(float);
        mean_at_ = place_.add(vector_bytes);
        var_at_ = place_.add(vector_bytes);
        pair_at_ = place_.add(2 * vector_bytes);
        pair_gradient_at_ = place_.add(2 * vector_bytes);
        padding_at_ = place_.add(std::max(step_.padding.get_size(), last_.padding.get_size()));
    }
    std::size_t scratch_bytes(catena_ctx* ctx) const { return place_.scratch_bytes(ctx); }
    void run(catena_ctx* ctx, const Arguments& a, void* scratch) const {
        place_.for_each(ctx, steps_, scratch, [&](std::int64_t i, const auto& mine) {
            const Step& step = i + 1 < steps_ ? step_ : last_;
            const std::int64_t first = i * block;
            const std::int64_t n = step.channels;
            float* const pair = mine(pair_at_);
            std::copy_n(a.gamma + first, n, pair);
            if (a.beta != nullptr) std::copy_n(a.beta + first, n, pair + n);
            else std::fill_n(pair + n, n, 0.0F);  // the gradient does not depend on it
            if (a.mean != nullptr) std::copy_n(a.mean + first, n, mine(mean_at_));
            if (a.var != nullptr) std::copy_n(a.var + first, n, mine(var_at_));
            const memory x = view(step.in.inner, mine(x_at_));
            const memory mean = view(step.vector, mine(mean_at_));
            const memory var = view(step.vector, mine(var_at_));
            const memory scale_shift = view(step.pair, pair);
            const memory padding = view(step.padding, mine(padding_at_));
            convert(step.in.convert, view(step.in.plain, a.x + first * plane_), x);
            // Each in place: what comes in is a copy.
            if (kind_ == gradient) {
                const memory gy = view(step.in.inner, mine(gy_at_));
                convert(step.in.convert, view(step.in.plain, a.gy + first * plane_), gy);
                step.op.execute(stream(), {{DNNL_ARG_SRC, x},
                                           {DNNL_ARG_DIFF_DST, gy},
                                           {DNNL_ARG_DIFF_SRC, gy},
                                           {DNNL_ARG_MEAN, mean},
                                           {DNNL_ARG_VARIANCE, var},
                                           {DNNL_ARG_SCALE_SHIFT, scale_shift},
                                           {DNNL_ARG_DIFF_SCALE_SHIFT,
                                            view(step.pair, mine(pair_gradient_at_))},
                                           {DNNL_ARG_SCRATCHPAD, padding}});
            } else {
                step.op.execute(stream(), {{DNNL_ARG_SRC, x},
                                           {DNNL_ARG_DST, x},
                                           {DNNL_ARG_MEAN, mean},
                                           {DNNL_ARG_VARIANCE, var},
                                           {DNNL_ARG_SCALE_SHIFT, scale_shift},
                                           {DNNL_ARG_SCRATCHPAD, padding}});
            }
            if (a.out != nullptr)
                convert(step.out.convert,
                        view(step.in.inner, mine(kind_ == gradient ? gy_at_ : x_at_)),
                        view(step.out.plain, data_of<float>(*a.out) + first * plane_));
            if (kind_ == fixed) return;
            const float* const made = mine(kind_ == gradient ? pair_gradient_at_ : mean_at_);
            give(a.first, a.req[1] == CATENA_REQ_ADD, first, made, n);
            give(a.second, a.req[2] == CATENA_REQ_ADD, first,
                 kind_ == gradient ? made + n : mine(var_at_), n);
        });
    }

private:
    Kind kind_;
    std::int64_t plane_;
    std::int64_t steps_;
    Step step_, last_;
    Place place_;
    std::size_t x_at_, gy_at_ = 0, mean_at_, var_at_, pair_at_, pair_gradient_at_, padding_at_;
};

template <Kind kind>
std::int32_t supports(catena_ctx*, const catena_call* call) {
    if (kind == gradient && call->gy[0] == nullptr) return 0;
    return fit(Images(*call->x[0])) ? 1 : 0;
}

template <Kind kind>
std::shared_ptr<const BatchNormalization> make(const catena_call& call) {
    return BatchNormalization::get(Images(*call.x[0]), attribute(call, "eps").v.f, kind,
                                   call.req[0] == CATENA_REQ_ADD);
}

template <Kind kind>
catena_status run(catena_ctx* ctx, const catena_call* call) {
    return guarded(ctx, [&] {
        const auto data = [](const catena_tensor* t) { return data_of<const float>(*t); };
        Arguments a = {};
        a.x = data(call->x[0]);
        a.gamma = data(call->x[1]);
        a.req = call->req;
        if constexpr (kind == gradient) {
            a.mean = data(call->y[1]);
            a.var = data(call->y[2]);
            a.gy = data(call->gy[0]);
            a.out = call->gx[0];
            a.first = call->gx[1];
            a.second = call->gx[2];
        } else {
            a.beta = data(call->x[2]);
            a.out = call->y[0];
        }
        if constexpr (kind == fixed) {
            a.mean = data(call->x[3]);
            a.var = data(call->x[4]);
        }
        if constexpr (kind == training) {
            a.first = call->y[1];
            a.second = call->y[2];
        }
        make<kind>(*call)->run(ctx, a, call->scratch);
    });
}

template <Kind kind>
constexpr catena_kernel of(const char* function, int phase) {
    return kernel(function, phase, supports<kind>, plan_place<make<kind>>, run<kind>,
                  below_portable, Row<float, float>::dtypes);  // of values, and of statistics
}

constexpr catena_kernel kernels[] = {
    of<training>("catena.batch_normalization", CATENA_PHASE_FORWARD),
    of<gradient>("catena.batch_normalization", CATENA_PHASE_BACKWARD),
    of<fixed>("catena.fixed_batch_normalization", CATENA_PHASE_FORWARD),
};

}  // namespace

constinit const std::span<const catena_kernel> batch_normalization_kernels = kernels;

}  // namespace catena_onednn
