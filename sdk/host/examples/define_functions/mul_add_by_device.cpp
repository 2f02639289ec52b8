// w = x * y + z with separate methods for the host and for GPUs, where one kernel launch does
// everything, for every dtype; this is Chainer's style.
#include <catena/catena.hpp>

using namespace catena;

struct MulAdd : Function<MulAdd> {
    Arrays forward_cpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        return {x * y + z};
    }
    Arrays backward_cpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        return {y * gw, x * gw, gw};
    }
    Arrays forward_gpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        return {cuda::elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_fwd")(x, y, z)};
    }
    Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        const auto [gx, gy] = cuda::elementwise<2>(
            "T x, T y, T gw", "T gx, T gy", "gx = y * gw; gy = x * gw", "muladd_bwd")(x, y, gw);
        return {gx, gy, gw};
    }
};

int main() {
    if (!cuda::available()) cuda::set_backend("cpu");  // logical CPU devices stand for GPUs
    for (const Device device : {cuda::host(), cuda::get_device(0)}) {
        const auto draw = [&] { return random::uniform({3, 2}, -1, 1, Dtype::float64, device); };
        const Array x = draw(), y = draw(), z = draw();
        const Variable w = MulAdd()(Variable(x), Variable(y), Variable(z));
        gradient_check::assert_allclose(w.data(), x * y + z);
        gradient_check::check_backward(MulAdd(), {x, y, z}, draw());
    }
}
