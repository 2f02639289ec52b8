// RMSprop: its arguments, checked by the function that takes them.
#include <catena/optimizers/rmsprop.hpp>

namespace catena::optimizers {

RMSprop::RMSprop(double learning_rate, double decay, double epsilon)
    : Optimizer({"ms"}), lr(learning_rate), alpha(decay), eps(epsilon) {
    (void)update_(lr, alpha, eps);
}

}  // namespace catena::optimizers
