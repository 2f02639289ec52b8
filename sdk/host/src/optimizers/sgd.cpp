// SGD: its arguments, checked by the function that takes them.
#include <catena/optimizers/sgd.hpp>

namespace catena::optimizers {

SGD::SGD(double learning_rate) : lr(learning_rate) { (void)update_(lr); }

}  // namespace catena::optimizers
