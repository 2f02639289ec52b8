// Rows for noise.py. The functions draw their noise: it is drawn twice with one seed, and replaced by
// the given noise.
#include "golden.hpp"

namespace F = catena::functions;

namespace {

using catena::Array;
using catena::Dtype;
using golden::Variables;

// Normal noise of x's shape and dtype; none of it is small, because a quotient of it would round.
Array normal(const Array& x, std::uint64_t& seed) {
    for (seed = 1;; ++seed) {
        catena::seed(seed);
        const Array noise = F::normal(x.shape(), 0, 1, x.dtype(), x.device());
        if (F::all(F::abs(noise) > 0.5).item<bool>()) return noise;
    }
}

}  // namespace

const golden::Rows noises = {
    {"gaussian",
     [](const auto& x, const auto&) {
         std::uint64_t seed = 0;
         const Array noise = normal(x[2].data(), seed);
         catena::seed(seed);
         return Variables{(F::gaussian(x[0], x[1]) - x[0]) * (x[2].data() / noise) + x[0]};
     }},
    {"gumbel_softmax",
     [](const auto& x, const auto& attrs) {
         const Array& given = x[1].data();
         const Dtype dtype = item_size(given.dtype()) == 2 ? Dtype::float32 : given.dtype();
         catena::seed(1);
         const Array u = F::uniform(given.shape(), 0, 1, dtype, given.device());
         const Array noise = (-F::log(-F::log(u))).astype(given.dtype());
         catena::seed(1);
         return Variables{
             F::gumbel_softmax(x[0] + (given - noise), attrs.at("tau"), attrs.at("axis"))};
     }},
};
