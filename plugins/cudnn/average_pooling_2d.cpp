// average_pooling_2d and its gradient. (Not max_pooling_2d: where a maximum lies is an output of it,
// which cuDNN does not tell.)
#include "operations.hpp"

namespace catena_cudnn {
namespace {

Image image_of(const catena_tensor& t) {
    const Shape s = shape_of(t);
    return {s[0], s[1], s[2], s[3]};
}

struct Window {
    explicit Window(const catena_call& call) {
        for (const int axis : {0, 1}) {
            size[axis] = attribute_of_axis(call, "ksize", axis, 1);
            stride[axis] = attribute_of_axis(call, "stride", axis, size[axis]);
            pad[axis] = attribute_of_axis(call, "pad", axis);
        }
    }
    // Windows of padding alone are none of cuDNN's.
    bool fits() const {
        return pad[0] < size[0] && pad[1] < size[1] && times(size[0], size[1]) <= INT_MAX;
    }
    std::int64_t size[2], stride[2], pad[2];
};

// Images to the means of their windows, or the windows' gradients back; which is which of a call's
// tensors depends on function and phase.
struct Pair {
    const catena_tensor* from;
    catena_tensor* to;
};
using Read = Pair (*)(const catena_call&);
Pair outputs(const catena_call& call) { return {call.x[0], call.y[0]}; }
Pair gradients(const catena_call& call) { return {call.gy[0], call.gx[0]}; }

template <Read read>
bool fits(const catena_call& call) {
    const Pair pair = read(call);
    return pair.from != nullptr && image_of(*pair.from).fits() && image_of(*pair.to).fits() &&
           Window(call).fits();
}

void set(const Session& s, const PoolingHandle& pooling, const Window& w) {
    const auto number = [](std::int64_t value) { return static_cast<int>(value); };
    s.check("cudnnSetPooling2dDescriptor",
            s.cudnn.set_pooling(pooling.raw, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                CUDNN_PROPAGATE_NAN, number(w.size[0]), number(w.size[1]),
                                number(w.pad[0]), number(w.pad[1]), number(w.stride[0]),
                                number(w.stride[1])));
}
template <Read read>
void average(const Session& s, const catena_call& call) {
    const Pair pair = read(call);
    const PoolingHandle pooling(s);
    set(s, pooling, Window(call));
    const TensorHandle from(s, type_of(*pair.from), image_of(*pair.from));
    const TensorHandle to(s, type_of(*pair.to), image_of(*pair.to));
    const Factors factors(*pair.to);
    s.check("cudnnPoolingForward",
            s.cudnn.pooling_forward(s.handle, pooling.raw, factors.one(), from.raw, data(pair.from),
                                    factors.add(adds(call, 0)), to.raw, data(pair.to)));
}
// Of x and y a mean's gradient needs the shapes alone; cuDNN wants addresses.
template <Read read>
void spread(const Session& s, const catena_call& call) {
    const Pair pair = read(call);
    const PoolingHandle pooling(s);
    set(s, pooling, Window(call));
    const TensorHandle from(s, type_of(*pair.from), image_of(*pair.from));
    const TensorHandle to(s, type_of(*pair.to), image_of(*pair.to));
    const Factors factors(*pair.to);
    s.check(
        "cudnnPoolingBackward",
        s.cudnn.pooling_backward(s.handle, pooling.raw, factors.one(), from.raw, data(pair.from),
                                 from.raw, data(pair.from), to.raw, data(pair.to),
                                 factors.add(adds(call, 0)), to.raw, data(pair.to)));
}

}  // namespace

void append_pooling(std::vector<catena_kernel>& all) {
    for (const catena_dtype* types : floating_types) {
        append_operation<fits<outputs>, average<outputs>, fits<gradients>, spread<gradients>>(
            all, "catena.average_pooling_2d", types);
        append_operation<fits<outputs>, spread<outputs>, fits<gradients>, average<gradients>>(
            all, "catena.average_pooling_2d_grad", types);
    }
}

}  // namespace catena_cudnn
