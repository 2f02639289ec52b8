// Functions with methods for the CPU and for GPUs: manual of Chainer 1.0.1, 1.4.1 and 1.4.2, and
// "Implementing Old-Style Functions" of Chainer 7.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;
using gradient_check::assert_allclose;

namespace {

// The methods that all MulAdd structs below share; Chainer's documents write "..." for them.
template <class Derived>
struct MulAddCpu : Function<Derived> {
    Arrays forward_cpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array w = x * y + z;
        return {w};
    }
    Arrays backward_cpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        return {y * gw, x * gw, gw};
    }
};

// 1.4.1: operators.
struct MulAdd : MulAddCpu<MulAdd> {
    Arrays forward_gpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array w = x * y + z;
        return {w};
    }
    Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        const Array gx = y * gw;
        const Array gy = x * gw;
        const Array& gz = gw;
        return {gx, gy, gz};
    }
};

// 1.4.2: kernels with pointers.
struct MulAddByPointers : MulAddCpu<MulAddByPointers> {
    Arrays forward_gpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array w = cuda::empty_like(x);
        cuda::elementwise("float* w, const float* x, const float* y, const float* z",
                          "w[i] = x[i] * y[i] + z[i]", "muladd_fwd")(w, x, y, z);
        return {w};
    }
    Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        const Array gx = cuda::empty_like(x);
        const Array gy = cuda::empty_like(y);
        // The manual has gy[i] and gx[i] on the right, by mistake.
        cuda::elementwise(
            R"(
            float* gx, float* gy,
            const float* x, const float* y, const float* gw
            )",
            R"(
            gx[i] = y[i] * gw[i];
            gy[i] = x[i] * gw[i];
            )",
            "muladd_bwd")(gx, gy, x, y, gw);
        const Array& gz = gw;  // no copy
        return {gx, gy, gz};
    }
};

// Chainer 7: kernels with types.
struct MulAddByTypes : MulAddCpu<MulAddByTypes> {
    Arrays forward_gpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array w = cuda::elementwise("float32 x, float32 y, float32 z", "float32 w",
                                          "w = x * y + z", "muladd_fwd")(x, y, z);
        return {w};
    }
    Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const auto [gw] = unpack<1>(grad_outputs);
        const auto [gx, gy] =
            cuda::elementwise<2>("float32 x, float32 y, float32 gw", "float32 gx, float32 gy",
                                 R"(
                                                   gx = y * gw;
                                                   gy = x * gw;
                                                   )",
                                 "muladd_bwd")(x, y, gw);
        const Array& gz = gw;
        return {gx, gy, gz};
    }
};

struct ExpAdd : Function<ExpAdd> {
    Arrays forward_cpu(ArraySpan inputs) override {
        const auto [x, y] = unpack<2>(inputs);
        return {F::exp(x) + F::exp(y)};  // np.exp
    }
    Arrays backward_cpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y] = unpack<2>(inputs);
        const auto [gz] = unpack<1>(grad_outputs);
        return {gz * F::exp(x), gz * F::exp(y)};
    }
    Arrays forward_gpu(ArraySpan inputs) override {
        const auto [x, y] = unpack<2>(inputs);
        return {F::exp(x) + F::exp(y)};  // cupy.exp
    }
    Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y] = unpack<2>(inputs);
        const auto [gz] = unpack<1>(grad_outputs);
        return {gz * F::exp(x), gz * F::exp(y)};
    }
};

Variable expadd(const Variable& x, const Variable& y) { return ExpAdd()(x, y); }

template <class F>
void check_mul_add(Device device) {
    const auto draw = [&] { return random::uniform({3, 2}, -1, 1, Dtype::float32, device); };
    const Variable x(draw()), y(draw()), z(draw());
    const Variable w = F()(x, y, z);
    assert_allclose(w.data(), x.data() * y.data() + z.data());
    w.set_grad(draw());
    w.backward();
    assert_allclose(x.grad(), y.data() * w.grad());
    assert_allclose(y.grad(), x.data() * w.grad());
    assert_allclose(z.grad(), w.grad());
}

}  // namespace

int main() {
    if (!cuda::available()) cuda::set_backend("cpu");  // logical CPU devices stand for GPUs
    for (const Device device : {cuda::host(), cuda::get_device(0)}) {
        check_mul_add<MulAdd>(device);
        check_mul_add<MulAddByPointers>(device);
        check_mul_add<MulAddByTypes>(device);
        const auto draw = [&] { return random::uniform({3, 2}, -1, 1, Dtype::float64, device); };
        const Array x = draw(), y = draw();
        assert_allclose(expadd(Variable(x), Variable(y)).data(), F::exp(x) + F::exp(y));
        gradient_check::check_backward(expadd, {x, y}, draw());
    }
}
