// AdaGrad: its arguments, checked by the function that takes them.
#include "registration.hpp"

#include <catena/optimizers/ada_grad.hpp>

namespace catena::optimizers {
namespace {

const Registration<AdaGrad> registration("ada_grad");

}  // namespace

AdaGrad::AdaGrad(double learning_rate, double epsilon)
    : Optimizer({"h"}), lr(learning_rate), eps(epsilon) {
    (void)update_(lr, eps);
}

}  // namespace catena::optimizers
