// AdaGrad: its arguments, checked by the function that takes them.
#include <catena/optimizers/ada_grad.hpp>

namespace catena::optimizers {

AdaGrad::AdaGrad(double learning_rate, double epsilon)
    : Optimizer({"h"}), lr(learning_rate), eps(epsilon) {
    (void)update_(lr, eps);
}

}  // namespace catena::optimizers
