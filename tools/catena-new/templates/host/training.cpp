// The training loop, with every step written out.
#include "training.hpp"

#include <cmath>
#include <vector>

using namespace catena;
namespace F = catena::functions;

namespace {

constexpr std::int64_t n_points = 256;

}  // namespace

Variable Net::operator()(const Variable& x) const {
    const Variable h = l1(x);
    return l2(f(h));
}

Losses train(Net& net, int steps) {
    std::vector<float> xs, ts;
    for (std::int64_t i = 0; i < n_points; ++i) {
        xs.push_back(2 * static_cast<float>(i) / n_points - 1);
        ts.push_back(std::sin(3 * xs.back()));
    }
    const Variable x = as_variable(Array::from<float>(xs, {n_points, 1}));
    const Variable t = as_variable(Array::from<float>(ts, {n_points, 1}));

    optimizers::Adam optimizer(/*alpha=*/0.01);
    optimizer.setup(net);
    Losses losses{};
    for (int step = 0; step <= steps; ++step) {
        const Variable loss = F::mean_squared_error(net(x), t);
        losses.last = loss.item();
        if (step == 0) losses.first = losses.last;
        if (step == steps) break;
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
    }
    return losses;
}
