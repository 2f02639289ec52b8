// An optimizer written on arrays, without a plugin. A saved and resumed training gives
// bit-identical results.
#include <catena/catena.hpp>

#include <cstdio>
#include <filesystem>
#include <random>
#include <string>

using namespace catena;

// [rule]
class Momentum : public Optimizer {
public:
    explicit Momentum(double rate = 0.01) : Optimizer({"v"}), lr(rate) {}
    double lr;

private:
    void update_one(Array& param, const Array& grad, std::span<Array> state) override {
        state[0] = 0.9 * state[0] - lr * grad;
        param += state[0];
    }
};
// [/rule]

struct Run : Visitable {
    links::Linear model{4, 3};
    Momentum optimizer{0.1};
    Run() { optimizer.setup(model); }
    void visit(Visitor& v) override { v("model", model)("optimizer", optimizer); }

    std::vector<float> learn(const Variable& x, Optimizer& by) {
        for (int i = 0; i < 3; ++i) {
            const Variable y = model(x);
            model.cleargrads();
            y.set_grad(y.data());  // the gradient of half the sum of y^2
            y.backward();
            by.update();
        }
        return model.W.data().to_vector<float>();
    }
};

int main() try {
    const auto file = std::filesystem::temp_directory_path() /
                      ("update_rule_" + std::to_string(std::random_device()()) + ".npz");
    const Variable x = as_variable(random::normal({8, 4}));
    Run run, same, resumed;
    same.model.copy_parameters_from(run.model);
    optimizers::MomentumSGD built_in(0.1, 0.9);
    built_in.setup(same.model);
    run.learn(x, run.optimizer);
    same.learn(x, built_in);
    gradient_check::assert_allclose(run.model.W.data(), same.model.W.data(), 1e-6, 1e-6);

    save_npz(file, run);  // model/W, optimizer/W/v, ...
    load_npz(file, resumed);
    std::filesystem::remove(file);
    if (resumed.learn(x, resumed.optimizer) != run.learn(x, run.optimizer))
        throw ValueError("update_rule: expected the same bits after resuming, got others");
} catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
