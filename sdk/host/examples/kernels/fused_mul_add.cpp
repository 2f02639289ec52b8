// w = x * y + z as one kernel, forward and backward, from formulas: on the CPU and on a GPU.
#include <catena/catena.hpp>

using namespace catena;

// A function itself, so that whoever asks for its gradient, which it has not, is told so.
struct MulAddGrad : FunctionNode {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const auto [x, y, gw] = unpack<3>(inputs);
        const auto bwd = elementwise<2>("T x, T y, T gw", "T gx, T gy", "gx = y * gw; gy = x * gw",
                                        "muladd_bwd");
        const auto [gx, gy] = bwd(x, y, gw);
        return {gx, gy};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable>) override {
        throw NotDifferentiableError("[muladd_bwd] gradient: not written yet");
    }
};

struct MulAdd : FunctionNode {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        retain_inputs({0, 1});
        const auto fwd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_fwd");
        return {fwd(x, y, z)};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable> grad_outputs) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        const Variable& gw = grad_outputs[0];
        const auto [gx, gy] = unpack<2>(apply<MulAddGrad>({x, y, gw}));
        return {gx, gy, gw};
    }
};

int main() {
    const auto draw = [] { return initializers::Uniform(1)({3, 2}, Dtype::float64); };
    const auto f = [](const std::vector<Variable>& v) {
        return apply<MulAdd>(std::span<const Variable>(v));
    };
    const std::vector<Array> x = {draw(), draw(), draw()}, gw = {draw()};
    gradient_check::check_backward(f, {x}, {gw});
    try {
        gradient_check::check_double_backward(f, {x}, {gw}, {{draw(), draw(), draw()}});
    } catch (const NotDifferentiableError&) {
        return 0;
    }
    return 1;
}
