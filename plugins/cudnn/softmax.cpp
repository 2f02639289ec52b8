// softmax along any axis.
#include <catena/plugin/rows.hpp>

#include "operations.hpp"

namespace catena_cudnn {
namespace {

Image lines(const catena_call& call, const catena_tensor& t) {
    const Shape shape = shape_of(t);
    std::int64_t axis = attribute(call, "axis").v.i;
    if (axis < 0) axis += static_cast<std::int64_t>(shape.size());
    const Axis along(shape, static_cast<std::size_t>(axis));
    return {along.outer, along.length, along.inner, 1};
}

bool fits_forward(const catena_call& call) { return lines(call, *call.y[0]).fits(); }
bool fits_backward(const catena_call& call) {
    return call.gy[0] != nullptr && lines(call, *call.gy[0]).fits();
}

void forward(const Session& s, const catena_call& call) {
    const catena_tensor& y = *call.y[0];
    const TensorHandle tensor(s, type_of(y), lines(call, y));
    const Factors factors(y);
    s.check("cudnnSoftmaxForward",
            s.cudnn.softmax_forward(s.handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                    factors.one(), tensor.raw, data(call.x[0]),
                                    factors.add(adds(call, 0)), tensor.raw, data(&y)));
}
void backward(const Session& s, const catena_call& call) {
    const catena_tensor& gx = *call.gx[0];
    const TensorHandle tensor(s, type_of(gx), lines(call, gx));
    const Factors factors(gx);
    s.check("cudnnSoftmaxBackward",
            s.cudnn.softmax_backward(s.handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                     factors.one(), tensor.raw, data(call.y[0]), tensor.raw,
                                     data(call.gy[0]), factors.add(adds(call, 0)), tensor.raw,
                                     data(&gx)));
}

}  // namespace

void append_softmax(std::vector<catena_kernel>& all) {
    for (const catena_dtype* types : floating_types)
        append_operation<fits_forward, forward, fits_backward, backward>(all, "catena.softmax",
                                                                         types);
}

}  // namespace catena_cudnn
