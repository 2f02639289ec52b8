// SGD: its arguments, checked by the function that takes them.
#include "registration.hpp"

#include <catena/optimizers/sgd.hpp>

namespace catena::optimizers {
namespace {

const Registration<SGD> registration("sgd");

}  // namespace

SGD::SGD(double learning_rate) : lr(learning_rate) { (void)update_(lr); }

}  // namespace catena::optimizers
