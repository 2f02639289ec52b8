// A net with the activation and the optimizer of other plugins.
// Usage: third_party DIGITS PLUGIN.catena...
#include <catena/catena.hpp>
#include <example/functions.hpp>  // typed wrappers of the plugins' functions

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

// [net]
struct Mlp : Chain {
    links::Linear l1{784, 100}, l2{100, 10};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) const override {
        return l2(example::softplus(l1(x), /*beta=*/4));
    }
};
// [/net]

// [optimizer]
// The plugin computes the step. This class names the state of each parameter, and the attributes.
class Lion : public Optimizer {
public:
    explicit Lion(double step_size, double decay = 0)
        : Optimizer({"m"}), lr(step_size), weight_decay(decay) {}
    double lr;
    double weight_decay;

private:
    PluginFunction step() override { return update_({lr, weight_decay}); }
    BoundFunction update_{"org.example.lion_update", {"lr", "decay"}};
};
// [/optimizer]

// [by_name]
// Without the generated header: the first call looks up the name and checks the attributes.
Variable softplus_by_name(const Variable& x) {
    static const PluginFunction softplus("org.example.softplus", {{"beta", 4.0}});
    return softplus(x);
}
// [/by_name]

int main(int argc, char** argv) try {
    if (argc < 3) throw DataError("usage: third_party DIGITS PLUGIN.catena...");
    // [load]
    for (int i = 2; i < argc; ++i) load_plugin(argv[i]);
    // [/load]
    const Mnist digits = load_mnist(argv[1]);
    Mlp model;
    Lion optimizer(/*step_size=*/0.001);
    optimizer.setup(model);
    Minibatches batches(digits.train, /*batch_size=*/100, /*seed=*/1);
    while (batches.epoch() < 3) {
        const Arrays batch = batches.next();
        const Variable loss =
            F::softmax_cross_entropy(model(as_variable(batch[0])), as_variable(batch[1]));
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
    }
    // [save]
    save_npz("model.npz", model);  // NumPy reads it: l1/W, l1/b, l2/W, l2/b
    Mlp loaded;
    load_npz("model.npz", loaded);
    // [/save]

    const no_backprop_mode evaluation;
    const Variable x = as_variable(digits.test.arrays[0]), t = as_variable(digits.test.arrays[1]);
    gradient_check::assert_allclose(softplus_by_name(x).data(), example::softplus(x, 4).data());
    std::printf("test accuracy: %.4f\n", F::accuracy(loaded(x), t).item());
    // [errors]
} catch (const Error& e) {  // InvalidError, ShapeError, DataError, PluginError ... are Errors
    std::fprintf(stderr, "third_party: %s\n", e.what());
    return 1;
}
// [/errors]
