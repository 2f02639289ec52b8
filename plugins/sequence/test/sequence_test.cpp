// Tests sequence.catena: likelihoods of label sequences where all sequences are equally likely.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

namespace {

World& world() {
    static World world({SEQUENCE_PLUGIN});
    return world;
}
Array zeros(const Dims& shape, std::size_t n) {
    return Array::from<double>(std::vector<double>(n), shape);
}

}  // namespace

TEST_CASE("crf1d: one of 2^3 sequences") {
    const Array loss = world().forward(
        "catena.crf1d",
        {zeros({2, 2}, 4), zeros({3, 1, 2}, 6), Array::from<std::int32_t>({0, 1, 1}, {3, 1})})[0];
    CHECK(loss.at(0) == doctest::Approx(3 * std::log(2)));
}

TEST_CASE("connectionist_temporal_classification: 3 of 2^2 sequences are the label") {
    const Array loss = world().forward(
        "catena.connectionist_temporal_classification",
        {zeros({2, 1, 2}, 4), Array::from<std::int32_t>({1}, {1, 1}), Array(), Array()},
        {set("blank_symbol", std::int64_t{0})})[0];
    CHECK(loss.at(0) == doctest::Approx(-std::log(0.75)));
}

TEST_CASE("connectionist_temporal_classification: repeated labels, lengths, gradients") {
    // The labels 1, 1 need a blank between them: 1 0 1 is the only one of 2^3 sequences.
    const Attrs blank = {set("blank_symbol", std::int64_t{0})};
    const std::vector<Array> x = {zeros({3, 1, 2}, 6), Array::from<std::int32_t>({1, 1}, {1, 2}),
                                  Array(), Array()};
    const std::string name = "catena.connectionist_temporal_classification";
    CHECK(world().forward(name, x, blank)[0].at(0) == doctest::Approx(3 * std::log(2)));
    CHECK(check(world(), {.function = name,
                          .inputs = {Array::random<double>({4, 2, 3}, 1),
                                     Array::from<std::int32_t>({1, 2, 2, 2}, {2, 2}),
                                     Array::from<std::int32_t>({3, 4}, {2}),
                                     Array::from<std::int32_t>({1, 2}, {2})},
                          .attrs = blank}) == "");
}
