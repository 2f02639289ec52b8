// local_response_normalization, in all dtypes but bfloat16.
#include "operations.hpp"

namespace catena_cudnn {
namespace {

struct Rule {
    explicit Rule(const catena_call& call)
        : n(attribute(call, "n").v.i / 2 * 2 + 1),  // as many on either side
          k(attribute(call, "k").v.f),
          alpha(attribute(call, "alpha").v.f),
          beta(attribute(call, "beta").v.f) {}
    bool fits() const {
        return n <= CUDNN_LRN_MAX_N && k >= CUDNN_LRN_MIN_K && beta >= CUDNN_LRN_MIN_BETA;
    }
    std::int64_t n;
    double k, alpha, beta;
};

bool fits_forward(const catena_call& call) {
    return channels_of(*call.y[0]).fits() && Rule(call).fits();
}
bool fits_backward(const catena_call& call) {
    return call.gy[0] != nullptr && channels_of(*call.gy[0]).fits() && Rule(call).fits();
}
void set(const Session& s, const LrnHandle& lrn, const Rule& rule) {
    // cuDNN divides alpha by the width of the window.
    s.check("cudnnSetLRNDescriptor",
            s.cudnn.set_lrn(lrn.raw, static_cast<unsigned>(rule.n),
                            rule.alpha * static_cast<double>(rule.n), rule.beta, rule.k));
}

void forward(const Session& s, const catena_call& call) {
    const catena_tensor& y = *call.y[0];
    const LrnHandle lrn(s);
    set(s, lrn, Rule(call));
    const TensorHandle tensor(s, type_of(y), channels_of(y));
    const Factors factors(y);
    s.check("cudnnLRNCrossChannelForward",
            s.cudnn.lrn_forward(s.handle, lrn.raw, CUDNN_LRN_CROSS_CHANNEL_DIM1, factors.one(),
                                tensor.raw, data(call.x[0]), factors.add(adds(call, 0)), tensor.raw,
                                data(&y)));
}
// y, which the function does not keep, is computed once more.
std::uint64_t room_for_y(const catena_call& call) {
    return static_cast<std::uint64_t>(size_of(*call.gx[0])) * (call.gx[0]->dl.dtype.bits / 8);
}
void backward(const Session& s, const catena_call& call) {
    const catena_tensor& gx = *call.gx[0];
    const LrnHandle lrn(s);
    set(s, lrn, Rule(call));
    const TensorHandle tensor(s, type_of(gx), channels_of(gx));
    const Factors factors(gx);
    s.check(
        "cudnnLRNCrossChannelForward",
        s.cudnn.lrn_forward(s.handle, lrn.raw, CUDNN_LRN_CROSS_CHANNEL_DIM1, factors.one(),
                            tensor.raw, data(call.x[0]), factors.zero(), tensor.raw, call.scratch));
    s.check(
        "cudnnLRNCrossChannelBackward",
        s.cudnn.lrn_backward(s.handle, lrn.raw, CUDNN_LRN_CROSS_CHANNEL_DIM1, factors.one(),
                             tensor.raw, call.scratch, tensor.raw, data(call.gy[0]), tensor.raw,
                             data(call.x[0]), factors.add(adds(call, 0)), tensor.raw, data(&gx)));
}

}  // namespace

void append_local_response_normalization(std::vector<catena_kernel>& all) {
    for (const catena_dtype* types :
         {Row<float>::dtypes, Row<double>::dtypes, Row<Float16>::dtypes})
        append_operation<fits_forward, forward, fits_backward, backward>(
            all, "catena.local_response_normalization", types, plan_operation<room_for_y>);
}

}  // namespace catena_cudnn
