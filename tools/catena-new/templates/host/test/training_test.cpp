// The net must learn: a loss that does not decrease is a failure.
#include "training.hpp"

#include <cstdio>
#include <exception>

int main() try {
    catena::seed(1);
    Net net("catena.tanh");
    const auto [first, last] = train(net, 200);
    std::fprintf(stderr, "loss: expected less than a tenth of %g, got %g\n", first, last);
    return last < first / 10 ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
