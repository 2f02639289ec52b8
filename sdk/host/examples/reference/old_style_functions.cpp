// Manual of Chainer 1.0.1, 1.4.1 and 1.4.2, and "Implementing Old-Style Functions" of Chainer 7: forward
// and backward on arrays. One pair of methods serves all devices.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

namespace {

using ArrayInputs = std::span<const Array>;
using ArrayTuple = std::vector<Array>;

struct MulAdd : Function<MulAdd> {
    ArrayTuple forward(ArrayInputs inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array w = x * y + z;
        return {w};
    }
    ArrayTuple backward(ArrayInputs inputs, ArrayInputs grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        const Array gx = y * gw;
        const Array gy = x * gw;
        const Array gz = gw;
        return {gx, gy, gz};
    }
};

Variable muladd(const Variable& x, const Variable& y, const Variable& z) {
    return MulAdd()(x, y, z);
}

struct ExpAdd : Function<ExpAdd> {
    ArrayTuple forward(ArrayInputs inputs) override {
        const auto [x, y] = unpack<2>(inputs);
        return {F::exp(x) + F::exp(y)};
    }
    ArrayTuple backward(ArrayInputs inputs, ArrayInputs grad_outputs) override {
        const auto [x, y] = unpack<2>(inputs);
        const Array& gz = grad_outputs[0];
        return {gz * F::exp(x), gz * F::exp(y)};
    }
};

Variable expadd(const Variable& x, const Variable& y) { return ExpAdd()(x, y); }

// One kernel for each direction. The manual's own backward reads gx and gy where it means x and y.
struct MulAddKernels : Function<MulAddKernels> {
    ArrayTuple forward(ArrayInputs inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array w = Array::empty(x.shape(), x.dtype(), x.device());
        elementwise("float* w, const float* x, const float* y, const float* z",
                    "w[i] = x[i] * y[i] + z[i]", "muladd_fwd")(w, x, y, z);
        return {w};
    }
    ArrayTuple backward(ArrayInputs inputs, ArrayInputs grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        const Array gx = Array::empty(x.shape(), x.dtype(), x.device());
        const Array gy = Array::empty(y.shape(), y.dtype(), y.device());
        elementwise("float* gx, float* gy, const float* x, const float* y, const float* gw", R"(
                    gx[i] = y[i] * gw[i];
                    gy[i] = x[i] * gw[i];
                    )",
                    "muladd_bwd")(gx, gy, x, y, gw);
        const Array gz = gw;  // no copy
        return {gx, gy, gz};
    }
};

// As in Chainer 7: outputs are made by the call, and T is the dtype of what it is given.
struct MulAddOfAnyType : Function<MulAddOfAnyType> {
    ArrayTuple forward(ArrayInputs inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        return {elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_fwd")(x, y, z)};
    }
    ArrayTuple backward(ArrayInputs inputs, ArrayInputs grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const Array& gw = grad_outputs[0];
        const auto [gx, gy] = elementwise<2>("T x, T y, T gw", "T gx, T gy", R"(
                                             gx = y * gw;
                                             gy = x * gw;
                                             )",
                                             "muladd_bwd")(x, y, gw);
        return {gx, gy, gw};
    }
};

using VariableTuple = std::vector<Variable>;

}  // namespace

int main() {
    const auto draw = [](Dtype dtype) { return initializers::Uniform(1)({3, 2}, dtype); };
    const auto check = [&](const gradient_check::VariableFunction& f, std::size_t n, Dtype dtype) {
        std::vector<Array> x;
        while (x.size() < n) x.push_back(draw(dtype));
        const std::vector<Array> gy = {draw(dtype)};
        gradient_check::check_backward(f, x, gy, {.atol = 1e-3, .rtol = 1e-3});
    };
    check([](const auto& v) { return VariableTuple{muladd(v[0], v[1], v[2])}; }, 3, Dtype::float64);
    check([](const auto& v) { return VariableTuple{expadd(v[0], v[1])}; }, 2, Dtype::float64);
    check([](const auto& v) { return MulAddKernels().apply(v); }, 3, Dtype::float32);
    check([](const auto& v) { return MulAddOfAnyType().apply(v); }, 3, Dtype::float64);

    const Variable x(draw(Dtype::float32)), y(draw(Dtype::float32)), z(draw(Dtype::float32));
    const Variable w = MulAdd()(x, y, z);
    gradient_check::assert_allclose(w.data(), MulAddKernels()(x, y, z).data());
    gradient_check::assert_allclose(w.data(), MulAddOfAnyType()(x, y, z).data());
}
