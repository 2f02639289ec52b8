// w = x * y + z as one kernel, forward and backward, from formulas: on the CPU and on a GPU.
#include <catena/catena.hpp>

using namespace catena;

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
        const auto bwd = elementwise<2>("T x, T y, T gw", "T gx, T gy", R"(
            gx = y * gw;
            gy = x * gw;
        )",
                                        "muladd_bwd");
        const auto [gx, gy] = bwd(x.data(), y.data(), grad_outputs[0].data());
        return {as_variable(gx), as_variable(gy), grad_outputs[0]};
    }
};

int main() {
    const auto draw = [] { return initializers::Uniform(1)({3, 2}, Dtype::float64); };
    const auto f = [](const std::vector<Variable>& v) {
        return apply<MulAdd>(std::span<const Variable>(v));
    };
    gradient_check::check_backward(f, {{draw(), draw(), draw()}}, {{draw()}});
}
