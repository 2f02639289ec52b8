// Calls that backward() repeats, with the random numbers of the first call.
#include <catena/checkpoint.hpp>
#include <catena/core/config.hpp>
#include <catena/core/grad.hpp>
#include <catena/fail.hpp>
#include <catena/function_node.hpp>

namespace catena {
namespace {

thread_local bool again = false;

struct Again {
    Again() = default;
    Again(Again&&) = delete;
    ~Again() { again = before; }
    const bool before = std::exchange(again, true);
};

class Checkpoint final : public FunctionNode {
public:
    explicit Checkpoint(std::function<Variables(const Variables&)> function)
        : function_(std::move(function)), reached_(Array::zeros({})) {}

    // Records the call although no input requires a gradient: parameters of the function may.
    Variables run(VariableList x) {
        Variables inputs(x.view().begin(), x.view().end());
        inputs.push_back(reached_);
        return apply(inputs);
    }
    std::string label() const override { return "checkpoint"; }

protected:
    Arrays forward(ArraySpan x) override {
        std::vector<std::size_t> all(x.size() - 1);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
        retain_inputs(all);
        const using_draws kept(&draws_, false);
        Variables inputs;
        for (const std::size_t i : all) inputs.push_back(x[i] ? as_variable(x[i]) : Variable());
        Arrays y;
        for (const Variable& each : function_(inputs)) y.push_back(each ? each.data() : Array());
        return y;
    }
    Variables backward(Targets targets, VariableSpan gy) override {
        if (config().enable_backprop)
            fail<UnsupportedError>("[checkpoint] backward: expected gradients of first order");
        Variables x = get_retained_inputs();
        for (Variable& each : x)
            if (each) each = as_variable(each.data());
        for (const std::size_t i : targets)
            if (i < x.size()) x[i].set_requires_grad(true);
        const Again scope;
        const using_draws same(&draws_, true);
        const force_backprop_mode graph;
        Variables y, grad_outputs;
        const Variables results = function_(x);
        for (std::size_t i = 0; i < gy.size() && i < results.size(); ++i) {
            if (!gy[i] || !results[i] || !results[i].requires_grad()) continue;
            y.push_back(results[i]);
            grad_outputs.push_back(gy[i]);
        }
        if (!y.empty()) catena::backward(y, grad_outputs);
        Variables gx;
        for (const Variable& each : x)
            gx.push_back(each && each.grad() ? as_variable(each.grad()) : Variable());
        gx.emplace_back();
        return gx;
    }

private:
    const std::function<Variables(const Variables&)> function_;
    const Variable reached_;
    std::vector<RandomState> draws_;
};

}  // namespace

bool in_recomputation() noexcept { return again; }

Variables functions::checkpoint(std::function<Variables(const Variables&)> function,
                                VariableList x) {
    if (!function) fail<InvalidError>("[checkpoint] function: expected one, got none");
    return std::make_shared<Checkpoint>(std::move(function))->run(x);
}

}  // namespace catena
