// Tests of random numbers and initializers: known values, reproducible bits, distributions.
#include <catena/core/error.hpp>
#include <catena/initializers.hpp>
#include <catena/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <thread>
#include <vector>

using namespace catena;

TEST_CASE("Philox gives the answers of its authors") {
    const auto block = philox(0, 0);
    CHECK(block == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox(0, 1) != block);
    CHECK(philox(1, 0) != block);
}

TEST_CASE("normal draws have the moments of the normal distribution") {
    std::vector<double> values(100001);
    Generator(7).normal(values);
    double m1 = 0;
    double m2 = 0;
    double m3 = 0;
    double m4 = 0;
    double tail = 0;
    for (const double v : values) {
        m1 += v;
        m2 += v * v;
        m3 += v * v * v;
        m4 += v * v * v * v;
        tail += std::abs(v) > 1.959963984540054;
    }
    const auto n = static_cast<double>(values.size());
    CHECK(m1 / n == doctest::Approx(0).epsilon(0.02));
    CHECK(m2 / n == doctest::Approx(1).epsilon(0.02));
    CHECK(m3 / n == doctest::Approx(0).epsilon(0.04));
    CHECK(m4 / n == doctest::Approx(3).epsilon(0.03));
    CHECK(tail / n == doctest::Approx(0.05).epsilon(0.05));
}

TEST_CASE("normal draws are those of Box and Muller") {
    std::vector<double> values(2);
    for (std::uint64_t key = 0; key < 2000; ++key) {
        Generator(key).normal(values);
        Generator same(key);
        const double radius = std::sqrt(-2 * std::log(1 - same.uniform()));
        const std::uint64_t draw = same();
        const double quarter = static_cast<double>(draw >> 62);
        const double place = static_cast<double>((draw << 2) >> 11) * 0x1p-53 - 0.5;
        const double angle = (quarter + place) * 1.5707963267948966;
        CHECK(values[0] == doctest::Approx(radius * std::cos(angle)).epsilon(1e-14));
        CHECK(values[1] == doctest::Approx(radius * std::sin(angle)).epsilon(1e-14));
    }
}

TEST_CASE("below() stays below and reaches everything alike") {
    Generator generator(3);
    std::array<int, 5> count{};
    for (int i = 0; i < 50000; ++i) ++count.at(generator.below(5));
    for (const int c : count) CHECK(std::abs(c - 10000) < 400);
    CHECK(generator.below(1) == 0);
    CHECK(generator.below(std::uint64_t{1} << 63) < std::uint64_t{1} << 63);
}

TEST_CASE("initializers follow seed(), and what they draw is drawn") {
    seed(5);
    const auto a = initializers::Normal(1)({3, 4}).to_vector<float>();
    const auto b = initializers::Normal(1)({3, 4}).to_vector<float>();
    seed(5);
    CHECK(initializers::Normal(1)({3, 4}).to_vector<float>() == a);
    CHECK(initializers::Normal(1)({3, 4}).to_vector<float>() == b);
    CHECK(a != b);
    seed(6);
    CHECK(initializers::Normal(1)({3, 4}).to_vector<float>() != a);
}

TEST_CASE("the first weights of seed 0 have these bits on every machine") {
    seed(0);
    const auto w = initializers::LeCunNormal()({100, 784}).to_vector<float>();
    std::uint32_t hash = 0;
    for (const float value : w) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 16777619u;
    CHECK(std::bit_cast<std::uint32_t>(w[0]) == 3180700735u);
    CHECK(hash == 1718447727u);
}

TEST_CASE("widths depend on the shape as they should") {
    seed(1);
    const auto deviation = [](const initializers::Initializer& init, const Shape& shape) {
        double sum = 0;
        const auto values = init(shape, Dtype::float64).to_vector<double>();
        for (const double v : values) sum += v * v;
        return std::sqrt(sum / static_cast<double>(values.size()));
    };
    const Shape shape{40, 30, 5, 5};  // fan-in 750, fan-out 1000
    CHECK(deviation(initializers::LeCunNormal(), shape) ==
          doctest::Approx(std::sqrt(1 / 750.)).epsilon(0.02));
    CHECK(deviation(initializers::HeNormal(2), shape) ==
          doctest::Approx(2 * std::sqrt(2 / 750.)).epsilon(0.02));
    CHECK(deviation(initializers::GlorotNormal(), shape) ==
          doctest::Approx(std::sqrt(2 / 1750.)).epsilon(0.02));
    CHECK(deviation(initializers::GlorotUniform(), shape) ==
          doctest::Approx(std::sqrt(2 / 1750.)).epsilon(0.02));
    CHECK(deviation(initializers::Uniform(3), shape) ==
          doctest::Approx(std::sqrt(3)).epsilon(0.02));
    CHECK(deviation(initializers::Constant(-2), {3}) == 2);
    CHECK_THROWS_AS(initializers::LeCunNormal()({3}), ShapeError);
    CHECK_THROWS_AS(initializers::Normal()({3}, Dtype::int32), DtypeError);
}

TEST_CASE("without random values, initializers make zeros and take no random numbers") {
    const auto draw = [] { return initializers::Normal(1)({3}).to_vector<float>(); };
    seed(5);
    const auto expected = draw();
    seed(5);
    {
        const initializers::no_random_values loading;
        CHECK(draw() == std::vector<float>{0, 0, 0});
        { const initializers::no_random_values inner; }
        CHECK(draw() == std::vector<float>{0, 0, 0});
        CHECK(initializers::One()({1}).item<float>() == 1);
        std::vector<float> other;
        std::thread([&] { other = initializers::Normal(1)({1}).to_vector<float>(); }).join();
        CHECK(other[0] != 0);
        seed(5);
    }
    CHECK(draw() == expected);
}

TEST_CASE("a scale that is no number is refused") {
    for (const double scale : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        CHECK_THROWS_AS((void)initializers::Normal{scale}(Shape{2}), InvalidError);
        CHECK_THROWS_AS((void)initializers::LeCunNormal{scale}(Shape{2, 2}), InvalidError);
        CHECK_THROWS_AS((void)initializers::Uniform{scale}(Shape{0}), InvalidError);
    }
}

TEST_CASE("arrays of random numbers, on any device, of any floating dtype") {
    seed(5);
    const Array u = random::uniform({1000}, -2, 3, Dtype::float64);
    const Array n = random::normal({1000}, 10, 0.5, Dtype::float64);
    CHECK(u.device() == Device::current());
    const auto us = u.to_vector<double>();
    CHECK(*std::min_element(us.begin(), us.end()) >= -2);
    CHECK(*std::max_element(us.begin(), us.end()) < 3);
    double sum = 0;
    for (const double v : us) sum += v;
    CHECK(sum / 1000 == doctest::Approx(0.5).epsilon(0.3));
    sum = 0;
    for (const double v : n.to_vector<double>()) sum += v;
    CHECK(sum / 1000 == doctest::Approx(10).epsilon(0.01));
    seed(5);
    CHECK(random::uniform({1000}, -2, 3, Dtype::float64).to_vector<double>() == us);
    std::vector<double> filled(1000);
    seed(5);
    fill_uniform(filled, -2, 3);  // the same random stream
    CHECK(filled == us);

    const Device second = Device::get("cpu:1");
    const Array there = random::uniform({2, 3}, 0, 1, Dtype::float16, second);
    CHECK(there.device() == second);
    CHECK(there.dtype() == Dtype::float16);
    CHECK(there.shape() == Shape{2, 3});
    const using_device scope(second);
    CHECK(random::normal({4}).device() == second);
    CHECK(random::normal({0}).size() == 0);
    CHECK_THROWS_AS((void)random::uniform({2}, 0, 1, Dtype::int32), DtypeError);
}

TEST_CASE("threads never draw the same numbers") {
    seed(8);
    constexpr std::size_t rounds = 20000;
    std::vector<double> drawn(4 * rounds);
    {
        std::vector<std::jthread> threads;
        for (std::size_t k = 0; k < 4; ++k) {
            threads.emplace_back([mine = std::span(drawn).subspan(k * rounds, rounds)] {
                for (std::size_t i = 0; i < rounds; ++i) fill_uniform(mine.subspan(i, 1), 0, 1);
            });
        }
    }
    std::ranges::sort(drawn);
    CHECK(std::ranges::adjacent_find(drawn) == drawn.end());
    CHECK(random_state(Device::current()).offset == 4 * rounds);
}
