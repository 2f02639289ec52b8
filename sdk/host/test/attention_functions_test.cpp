// Tests of positions for attention, and of attention with a cache.
#include <catena/catena.hpp>
#include <catena/functions.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace catena;
namespace F = catena::functions;

namespace {

Array numbers(const Shape& shape, double step) {
    std::vector<float> values;
    for (std::int64_t i = 0, n = Array::zeros(shape, Dtype::float32).size(); i < n; ++i)
        values.push_back(static_cast<float>(std::sin(step * static_cast<double>(i + 1))));
    return Array::from(std::span<const float>(values), shape);
}

}  // namespace

TEST_CASE("alibi") {
    // The slopes of 6 heads are those of 4, and two of 8.
    const auto slopes = F::alibi(6, 1, 2, 0, Dtype::float64).to_vector<double>();
    for (const auto& [head, slope] : {std::pair(0, 4), {1, 16}, {3, 256}, {4, 2}, {5, 8}})
        CHECK(slopes[static_cast<std::size_t>(2 * head + 1)] == -1.0 / slope);
    const Array mask = F::alibi(2, 2, 3, -1);
    CHECK(mask.shape() == Shape{1, 2, 2, 3});
    const float a = -1.0f / 16, b = -1.0f / 256;
    CHECK(mask.to_vector<float>() ==
          std::vector<float>{a, 0, a, 2 * a, a, 0, b, 0, b, 2 * b, b, 0});
    CHECK(F::alibi(1, 0, 3).shape() == Shape{1, 1, 0, 3});
    // 8 heads of Press and others: 2^-1, 2^-2, ..., times the distance.
    const Array wide = F::alibi(8, 1, 300, 299, Dtype::float64, Device::get("cpu:1"));
    CHECK(wide.device() == Device::get("cpu:1"));
    const auto values = wide.to_vector<double>();
    for (int h = 0; h < 8; ++h)
        for (const int s : {0, 100, 298, 299})
            CHECK(values[static_cast<std::size_t>(300 * h + s)] == -std::exp2(-h - 1) * (299 - s));
    for (const Dtype half : {Dtype::float16, Dtype::bfloat16}) {
        const Array rounded = F::alibi(6, 2, 300, 1000, half);
        CHECK(rounded.dtype() == half);
        CHECK(rounded.to_vector<float>() ==
              F::alibi(6, 2, 300, 1000).astype(half).to_vector<float>());
    }
    CHECK_THROWS_WITH_AS(F::alibi(1, 1, 1, 0, Dtype::int32),
                         "[catena.alibi] dtype: expected a floating one, got int32", DtypeError);
    CHECK_THROWS_WITH_AS(F::alibi(0, 1, 1),
                         "[catena.alibi] attribute 'heads': expected 1 to 1048576, got 0",
                         InvalidError);
    CHECK_THROWS_AS(F::alibi(1, -1, 1), InvalidError);
    CHECK_THROWS_AS(F::alibi(1, 1, -1), InvalidError);
    CHECK_THROWS_AS(F::alibi(1, 1, 1, -2), InvalidError);
}

TEST_CASE("rotary_tables") {
    const auto [cos, sin] = F::rotary_tables(50, 4, 100);
    CHECK(cos.shape() == Shape{50, 2});
    CHECK(cos.to_vector<float>()[7 * 2] == static_cast<float>(std::cos(7.0)));
    CHECK(sin.to_vector<float>()[7 * 2 + 1] == static_cast<float>(std::sin(0.7)));
    const auto far =
        F::rotary_tables(100'001, 2, 10000, Dtype::float64, 1, 1, 4, 0, Device::get("cpu:1"));
    CHECK(far.cos.device() == Device::get("cpu:1"));
    CHECK(far.cos.to_vector<double>()[100'000] == doctest::Approx(std::cos(1e5)).epsilon(1e-12));
    CHECK(far.sin.to_vector<double>()[100'000] == doctest::Approx(std::sin(1e5)).epsilon(1e-12));
    CHECK_THROWS_WITH_AS(
        F::rotary_tables(0, 4),
        "[catena.rotary_tables] attribute 'length': expected 1 to 1099511627776, got 0",
        InvalidError);
    CHECK_THROWS_WITH_AS(F::rotary_tables(1, 3),
                         "[catena.rotary_tables] size: expected an even number, got 3",
                         InvalidError);
    CHECK_THROWS_WITH_AS(F::rotary_tables(1, 2, 0),
                         "[catena.rotary_tables] base: expected a number above 0, got 0.0",
                         InvalidError);
    // Frequencies 1, 0.1 and 0.01 turn 6.4, 0.64 and 0.064 times in 40 tokens: see RotaryScaling.
    const auto scaled = F::rotary_tables(2, 6, 1000, Dtype::float32, 8, 0.2, 1, 40);
    const double kept = (4 / (2 * 3.14159265358979) - 0.2) / 0.8;
    const double expected[] = {1, 0.1 * (kept + (1 - kept) / 8), 0.01 / 8};
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(scaled.sin.to_vector<float>()[3 + i] ==
              doctest::Approx(std::sin(expected[i])).epsilon(1e-6));
    CHECK(F::rotary_tables(2, 4, 100, Dtype::float32, 4).sin.to_vector<float>()[3] ==
          doctest::Approx(std::sin(0.1 / 4)).epsilon(1e-6));
    CHECK_THROWS_WITH_AS(F::rotary_tables(1, 2, 1, Dtype::float32, 0),
                         "[catena.rotary_tables] factor: expected a number above 0, got 0.0",
                         InvalidError);
    CHECK_THROWS_WITH_AS(F::rotary_tables(1, 2, 1, Dtype::float32, 2, 4, 4),
                         "[catena.rotary_tables] low: expected a number below high, which is 4.0, "
                         "got 4.0",
                         InvalidError);
    // Products of rotated vectors depend on the difference of their positions.
    const Array q = numbers({1, 1, 1, 4}, 1), k = numbers({1, 1, 1, 4}, 2);
    for (const bool interleaved : {false, true}) {
        const auto product = [&](std::int64_t place_q, std::int64_t place_k) {
            const Array a = F::rotary_embedding(q, cos, sin, {}, interleaved, place_q);
            const Array b = F::rotary_embedding(k, cos, sin, {}, interleaved, place_k);
            return F::sum(a * b).to_vector<float>()[0];
        };
        CHECK(std::abs(product(3, 10) - product(40, 47)) < 1e-5);
        CHECK(std::abs(product(3, 10) - product(3, 11)) > 1e-3);
    }
}

// A sequence that is computed at once, and in parts with a cache of keys and values.
TEST_CASE("attention with a cache") {
    const auto [cos, sin] = F::rotary_tables(9, 4);
    const Array q = numbers({2, 4, 9, 4}, 1), k = numbers({2, 2, 9, 4}, 2);
    const Array v = numbers({2, 2, 9, 3}, 3);
    const auto rows = [](const Array& x, int from, int to) {
        return F::split_axis(x, Ints{from, to}, 2)[1];
    };
    const auto attend = [&](int from, int to) {
        const Array keys = F::rotary_embedding(rows(k, 0, to), cos, sin);
        const Array queries = F::rotary_embedding(rows(q, from, to), cos, sin, {}, false, from);
        return F::scaled_dot_product_attention(queries, keys, rows(v, 0, to),
                                               F::alibi(4, to - from, to, -1), {}, {}, true, 0, 0,
                                               0, -1);
    };
    const Array all = attend(0, 9);
    for (const auto& [from, to] : {std::pair{0, 5}, {5, 6}, {6, 7}, {7, 9}})
        CHECK_NOTHROW(
            gradient_check::assert_allclose(attend(from, to), rows(all, from, to), 1e-6, 1e-5));
}

TEST_CASE("packed sequences are attended one by one") {
    const auto draw = [](std::int64_t heads, std::int64_t size, double step) {
        return Variable(numbers({9, heads, size}, step));
    };
    const Variable q = draw(4, 4, 1), k = draw(2, 4, 2), v = draw(2, 3, 3);
    const std::vector<std::int64_t> offsets{0, 4, 4, 9};
    // The same with a mask of blocks.
    std::vector<std::uint8_t> blocks;
    for (int i = 0; i < 9; ++i)
        for (int j = 0; j < 9; ++j) blocks.push_back((i < 4) == (j < 4) ? 1 : 0);
    const Variable mask = as_variable(Array::from(blocks, {9, 9}).astype(Dtype::bool8));
    for (const bool causal : {false, true}) {
        const Variable y = F::packed_attention(q, k, v, offsets, causal, 0.3);
        const auto batch = [](const Variable& x) { return F::expand_dims(x, 0); };
        const Variable whole = F::scaled_dot_product_attention(
            batch(q), batch(k), batch(v), {}, mask, {}, causal, 0.3, 0, 0, 0, "BTHD");
        const Variable expected = F::reshape(whole, {9, 4, 3});
        gradient_check::assert_allclose(y.data(), expected.data(), 1e-6, 1e-5);
        const auto gy = Variable(numbers({9, 4, 3}, 0.7));
        const auto gradients = grad({F::sum(y * gy)}, {q, k, v}),
                   others = grad({F::sum(expected * gy)}, {q, k, v});
        for (std::size_t i = 0; i < 3; ++i)
            gradient_check::assert_allclose(gradients[i].data(), others[i].data(), 1e-6, 1e-5);
    }
    const auto message = [&](const std::vector<std::int64_t>& wrong) {
        std::string text;
        try {
            (void)F::packed_attention(q, k, v, wrong);
        } catch (const ShapeError& error) {
            text = error.what();
        }
        return text;
    };
    CHECK(message({0, 5, 4, 9}) ==
          "[catena.packed_attention] offsets: expected numbers from 0 to 9 in their order, got (0, "
          "5, 4, 9)");
    for (const auto& wrong : {std::vector<std::int64_t>{}, {0}, {1, 9}, {0, 8}})
        CHECK(message(wrong).starts_with("[catena.packed_attention] offsets: expected"));
    CHECK_THROWS_AS((void)F::packed_attention(q, k, Variable(numbers({8, 2, 3}, 1)), offsets),
                    ShapeError);
}
