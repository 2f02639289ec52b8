// sample_token(): frequencies, top_k, top_p, ties and what is wrong.
#include <catena/core/error.hpp>
#include <catena/sampling.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace catena;

namespace {

// Frequencies of 20,000 draws.
std::vector<double> frequencies(const std::vector<float>& scores, const Sampling& how) {
    constexpr int n = 20'000;
    Generator generator(1);
    std::vector<double> counts(scores.size(), 0.0);
    for (int i = 0; i < n; ++i)
        counts[static_cast<std::size_t>(sample_token(scores, how, generator))] += 1.0 / n;
    return counts;
}
void check(const std::vector<double>& got, const std::vector<double>& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        if (expected[i] == 0) CHECK(got[i] == 0);
        else CHECK(std::abs(got[i] - expected[i]) < 0.015);
    }
}
float log_of(double p) { return static_cast<float>(std::log(p)); }

}  // namespace

TEST_CASE("frequencies are the probabilities") {
    const std::vector<float> scores = {log_of(0.1), log_of(0.4), -INFINITY, log_of(0.2),
                                       log_of(0.3)};
    check(frequencies(scores, {}), {0.1, 0.4, 0, 0.2, 0.3});
    check(frequencies(scores, {.temperature = 0.5}), {0.01 / 0.3, 0.16 / 0.3, 0, 0.04 / 0.3, 0.3});
    check(frequencies(scores, {.temperature = 0}), {0, 1, 0, 0, 0});
    check(frequencies(scores, {.top_k = 2}), {0, 4.0 / 7, 0, 0, 3.0 / 7});
    check(frequencies(scores, {.top_k = 9}), {0.1, 0.4, 0, 0.2, 0.3});
    check(frequencies(scores, {.top_p = 0.65}), {0, 4.0 / 7, 0, 0, 3.0 / 7});
    check(frequencies(scores, {.top_p = 0.75}), {0, 4.0 / 9, 0, 2.0 / 9, 3.0 / 9});
    check(frequencies(scores, {.top_p = 1e-9}), {0, 1, 0, 0, 0});
    check(frequencies(scores, {.top_k = 3, .top_p = 0.5}), {0, 4.0 / 7, 0, 0, 3.0 / 7});
}

TEST_CASE("ties, huge scores, NaN, one token") {
    Generator generator(1);
    const float nan = std::nanf("");
    CHECK(sample_token(std::vector<float>{1, 3, 3}, {.temperature = 0}, generator) == 1);
    CHECK(sample_token(std::vector<float>{1, 3, 3}, {.top_k = 1}, generator) == 1);
    CHECK(sample_token(std::vector<float>{1e30F, -1e30F}, {}, generator) == 0);
    CHECK(sample_token(std::vector<float>{0, INFINITY}, {}, generator) == 1);
    CHECK(sample_token(std::vector<float>{nan, -5}, {}, generator) == 1);
    CHECK(sample_token(std::vector<float>{-5}, {.temperature = 1e-6}, generator) == 0);
}

TEST_CASE("the seed determines the tokens") {
    const std::vector<float> scores(100, 0.0F);
    Generator a(7), b(7);
    for (int i = 0; i < 50; ++i) CHECK(sample_token(scores, {}, a) == sample_token(scores, {}, b));
}

TEST_CASE("what is wrong") {
    Generator generator(1);
    const std::vector<float> one = {0};
    CHECK_THROWS_WITH_AS(sample_token(one, {.temperature = -1}, generator),
                         "[sampling] temperature: expected a finite number >= 0, got -1",
                         InvalidError);
    CHECK_THROWS_AS(sample_token(one, {.temperature = INFINITY}, generator), InvalidError);
    CHECK_THROWS_WITH_AS(sample_token(one, {.top_k = -1}, generator),
                         "[sampling] top_k: expected 0 or more, got -1", InvalidError);
    CHECK_THROWS_WITH_AS(sample_token(one, {.top_p = 0}, generator),
                         "[sampling] top_p: expected above 0, up to 1, got 0", InvalidError);
    CHECK_THROWS_WITH_AS(sample_token(std::vector<float>{-INFINITY}, {}, generator),
                         "[sampling] scores: expected one above -inf, got 1 without", InvalidError);
    CHECK_THROWS_AS(sample_token({}, {}, generator), InvalidError);
}
