// MomentumSGD: its arguments, checked by the function that takes them.
#include "registration.hpp"

#include <catena/optimizers/momentum_sgd.hpp>

namespace catena::optimizers {
namespace {

const Registration<MomentumSGD> registration("momentum_sgd");

}  // namespace

MomentumSGD::MomentumSGD(double learning_rate, double decay)
    : Optimizer({"v"}), lr(learning_rate), momentum(decay) {
    (void)update_(lr, momentum);
}

}  // namespace catena::optimizers
