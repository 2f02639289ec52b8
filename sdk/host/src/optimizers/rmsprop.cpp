// RMSprop: its arguments, checked by the function that takes them.
#include "registration.hpp"

#include <catena/optimizers/rmsprop.hpp>

namespace catena::optimizers {
namespace {

const Registration<RMSprop> registration("rmsprop");

}  // namespace

RMSprop::RMSprop(double learning_rate, double decay, double epsilon)
    : Optimizer({"ms"}), lr(learning_rate), alpha(decay), eps(epsilon) {
    (void)update_(lr, alpha, eps);
}

}  // namespace catena::optimizers
