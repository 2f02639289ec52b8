// AdaDelta: its arguments, checked by the function that takes them.
#include "registration.hpp"

#include <catena/optimizers/ada_delta.hpp>

namespace catena::optimizers {
namespace {

const Registration<AdaDelta> registration("ada_delta");

}  // namespace

AdaDelta::AdaDelta(double decay, double epsilon)
    : Optimizer({"msg", "msdx"}), rho(decay), eps(epsilon) {
    (void)update_(rho, eps);
}

}  // namespace catena::optimizers
