// "Define your own function" of Chainer 7: FunctionNode with a method for the CPU and one for GPUs.
#include <catena/catena.hpp>

#include <functional>

using namespace catena;
namespace F = catena::functions;
using gradient_check::assert_allclose;

namespace {

struct Skeleton : FunctionNode {
    Arrays forward_cpu(ArraySpan inputs) override {
        // do forward computation on CPU
        return {inputs[0]};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        // do backward computation
        return {grad_outputs[0]};
    }
};

struct MulAddCpu : FunctionNode {
    Arrays forward_cpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        retain_inputs({0, 1});
        const Array w = x * y + z;
        return {w};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        const auto [gw] = unpack<1>(grad_outputs);
        const Variable gx = y * gw;
        const Variable gy = x * gw;
        const Variable& gz = gw;
        return {gx, gy, gz};
    }
};

struct MulAdd : MulAddCpu {
    Arrays forward_gpu(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        retain_inputs({0, 1});
        const Array w = x * y + z;
        return {w};
    }
};

struct ExpAdd : FunctionNode {
    Arrays forward_cpu(ArraySpan inputs) override {
        retain_inputs({0, 1});
        const auto [x, y] = unpack<2>(inputs);
        const Array z = F::exp(x) + F::exp(y);  // np.exp
        return {z};
    }
    Arrays forward_gpu(ArraySpan inputs) override {
        retain_inputs({0, 1});
        const auto [x, y] = unpack<2>(inputs);
        const Array z = F::exp(x) + F::exp(y);  // cupy.exp
        return {z};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        const auto [gz] = unpack<1>(grad_outputs);
        return {gz * F::exp(x), gz * F::exp(y)};
    }
};

struct MulAddGrad : FunctionNode {
    static constexpr std::size_t n_outputs = 3;
    Arrays forward_cpu(ArraySpan inputs) override {
        const auto [x, y, z, gw] = unpack<4>(inputs);
        return {y * gw, x * gw, gw};
    }
    Arrays forward_gpu(ArraySpan inputs) override {
        const auto [x, y, z, gw] = unpack<4>(inputs);
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
    Variables backward(Targets, VariableSpan) override {
        // Only gradients of higher order need it.
        throw NotDifferentiableError("[MulAddGrad] backward: it has no gradient of second order");
    }
};

// Chainer's page retains two inputs but reads three; this function retains all three.
struct FusedMulAdd : FunctionNode {
    Arrays forward_cpu(ArraySpan inputs) override {
        retain_inputs({0, 1, 2});
        const auto [x, y, z] = unpack<3>(inputs);
        return {x * y + z};
    }
    Arrays forward_gpu(ArraySpan inputs) override {
        retain_inputs({0, 1, 2});
        const auto [x, y, z] = unpack<3>(inputs);
        const Array w = cuda::elementwise("float32 x, float32 y, float32 z", "float32 w",
                                          "w = x * y + z", "muladd_fwd")(x, y, z);
        return {w};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(get_retained_inputs());
        const auto [gw] = unpack<1>(grad_outputs);
        const auto [gx, gy, gz] = apply<MulAddGrad>(x, y, z, gw);
        return {gx, gy, gz};
    }
};

Variable skeleton(const Variable& x) { return apply<Skeleton>(x)[0]; }
Variable expadd(const Variable& x, const Variable& y) { return apply<ExpAdd>(x, y)[0]; }
template <class Function>
Variable muladd(const Variable& x, const Variable& y, const Variable& z) {
    const auto [w] = apply<Function>(x, y, z);
    return w;
}

using Ternary = std::function<Variable(const Variable&, const Variable&, const Variable&)>;

void check_mul_add(const Ternary& f, Device device) {
    const auto draw = [&] { return random::uniform({3, 2}, -1, 1, Dtype::float32, device); };
    const Variable x(draw()), y(draw()), z(draw());
    const Variable w = f(x, y, z);
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
    const Device gpu = cuda::get_device(0);
    const auto draw = [](Device device) {
        return random::uniform({3, 2}, -1, 1, Dtype::float64, device);
    };
    for (const Device device : {cuda::host(), gpu}) {
        check_mul_add(muladd<MulAdd>, device);
        check_mul_add(muladd<FusedMulAdd>, device);
        const Array x = draw(device), y = draw(device), gz = draw(device);
        assert_allclose(expadd(Variable(x), Variable(y)).data(), F::exp(x) + F::exp(y));
        gradient_check::check_backward(expadd, {x, y}, gz);
        gradient_check::check_double_backward(expadd, {x, y}, gz, {draw(device), draw(device)});
    }
    check_mul_add(muladd<MulAddCpu>, cuda::host());
    gradient_check::check_backward(skeleton, draw(cuda::host()), draw(cuda::host()));
    try {
        check_mul_add(muladd<MulAddCpu>, gpu);
    } catch (const UnsupportedError&) {  // it has no forward_gpu()
        return 0;
    }
    return 1;
}
