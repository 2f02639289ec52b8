// Manual of Chainer 1.0.1, 1.1.4 and 1.1.5: a FunctionSet, and an optimizer of its parameters.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

int main() {
    FunctionSet model{
        {"l1", links::Linear(4, 3)},
        {"l2", links::Linear(3, 2)},
    };
    model.add("l3", links::Linear(2, 2));  // model.l3 = ...

    const Variable x(Array::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}));
    const Variable h1 = model["l1"](x);
    const Variable h2 = model["l2"](h1);
    const Variable h3 = model["l3"](h2);
    if (model.parameters().size() != 6 || model.gradients().size() != 6) return 1;

    optimizers::SGD optimizer;
    optimizer.setup(model.collect_parameters());
    optimizer.zero_grads();
    Arrays before;
    for (const Variable& parameter : model.parameters()) before.push_back(parameter.data().copy());
    F::sum(h3).backward();  // (compute gradient)
    optimizer.update();
    const Variable& b = model.get<links::Linear>("l3").b;
    gradient_check::assert_allclose(b.data(), before[5] - 0.01 * 2);
    model.copy_parameters_from(before);  // takes the step back
    gradient_check::assert_allclose(b.data(), before[5]);

    optimizer.weight_decay(0.0005);
    optimizer.clip_grads(1);
    return optimizer.compute_grads_norm() <= 1.001 && optimizer.t() == 1 ? 0 : 1;
}
