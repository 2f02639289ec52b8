// attention: compared with a direct softmax, over more than one block of queries and keys.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <algorithm>
#include <cmath>

using namespace catena::testing;

namespace {

// Returns the attention of one batch by the definition, summed in double.
Array plain_attention(const Array& q, const Array& k, const Array& v, bool causal) {
    const std::int64_t n = q.shape()[1], m = k.shape()[1], d = q.shape()[2], e = v.shape()[2];
    Array y({1, n, e}, dtype_of<double>());
    for (std::int64_t i = 0; i < n; ++i) {
        double total = 0;
        std::vector<double> sums(static_cast<std::size_t>(e));
        for (std::int64_t j = 0; j < (causal ? std::min(m, i + 1) : m); ++j) {
            double score = 0;
            for (std::int64_t l = 0; l < d; ++l) score += q.at(i * d + l) * k.at(j * d + l);
            const double weight = std::exp(score / std::sqrt(static_cast<double>(d)));
            total += weight;
            for (std::int64_t l = 0; l < e; ++l)
                sums[static_cast<std::size_t>(l)] += weight * v.at(j * e + l);
        }
        for (std::int64_t l = 0; l < e; ++l)
            y.set(i * e + l, sums[static_cast<std::size_t>(l)] / total);
    }
    return y;
}

}  // namespace

TEST_CASE("attention") {
    World world(PLUGIN);
    const std::string name = "org.example.attention";
    const Array q = Array::random<double>({1, 150, 4}, 1, -3, 3);
    const Array k = Array::random<double>({1, 140, 4}, 2, -3, 3);
    const Array v = Array::random<double>({1, 140, 3}, 3);
    for (const bool causal : {false, true}) {
        const Array y = world.forward(name, {q, k, v}, {set("causal", causal)})[0];
        CHECK(compare(y, plain_attention(q, k, v, causal), {1e-12, 1e-12}) == "");
    }
    // With scores of 1000, e^score would be inf.
    const Array large = Array::constant({1, 2, 1}, dtype_of<double>(), 1000);
    const Array value = Array::from<double>({1, 3}, {1, 2, 1});
    CHECK(check(world, {.function = name,
                        .inputs = {Array::from<double>({1}, {1, 1, 1}), large, value},
                        .expected = {Array::from<double>({2}, {1, 1, 1}),
                                     Array::from<double>({1000 + std::log(2.0)}, {1, 1})},
                        .edges = false}) == "");
    CHECK(check(world, {.function = name,
                        .inputs = {q, v, v},
                        .error = "k.shape[2]: expected 4, got 3"}) == "");
    CHECK(conform(world, name).failures() == "");
}
