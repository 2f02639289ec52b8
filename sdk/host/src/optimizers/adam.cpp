// Adam: its arguments, checked by the function that takes them.
#include "registration.hpp"

#include <catena/optimizers/adam.hpp>

#include <algorithm>
#include <cmath>

namespace catena::optimizers {
namespace {

const Registration<Adam> registration("adam");

}  // namespace

Adam::Adam(double step_size, double decay1, double decay2, double decay_of_beta1, double epsilon)
    : Optimizer({"m", "v"}),
      alpha(step_size),
      beta1(decay1),
      beta2(decay2),
      lam(decay_of_beta1),
      eps(epsilon) {
    (void)update_(alpha, beta1, beta2, lam, eps, 1);
}

double Adam::lr() const {
    const auto n = static_cast<double>(std::max<std::int64_t>(t(), 1));
    return alpha * std::sqrt(1 - std::pow(beta2, n)) / (1 - std::pow(beta1, n));
}

}  // namespace catena::optimizers
