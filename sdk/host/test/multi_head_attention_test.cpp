// links::MultiHeadAttention against its definition, with gradients; and its errors.
#include <catena/catena.hpp>

#include <cmath>
#include <thread>

#include "temporary.hpp"

using namespace catena;
namespace F = functions;
using links::MultiHeadAttention;
using links::RotaryPositions;

namespace {

constexpr std::int64_t n = 2, t = 4, s = 5, units = 8, heads = 4, size = units / heads;

Variable draw(const Shape& shape) { return Variable(random::normal(shape, 0, 1, Dtype::float64)); }

MultiHeadAttention make(const MultiHeadAttention::Options& options) {
    MultiHeadAttention link(units, heads, options);
    link.to(Dtype::float64);
    for (const auto& p : link.collect_parameters())
        p.variable.data().copy_from(random::normal(p.variable.shape(), 0, 0.5, Dtype::float64));
    return link;
}

// Attention written with products, head by head.
Variable definition(const MultiHeadAttention& link, const Variable& x, const Variable& context,
                    const Array& seen, std::int64_t kv_heads) {
    const Variable q = link.q(x, 2), k = link.k(context, 2), v = link.v(context, 2);
    std::vector<Variable> all;
    const auto head = [&](const Variable& of, std::int64_t i) {
        return F::get_item(of, {0, 0, i * size}, {n, of.shape()[1], (i + 1) * size});
    };
    for (std::int64_t i = 0; i < heads; ++i) {
        const std::int64_t shared = i / (heads / kv_heads);
        const Variable scores =
            F::matmul(head(q, i), head(k, shared), false, true) / std::sqrt(double{size});
        const Variable hidden = F::where(as_variable(seen), scores,
                                         as_variable(Array::full({}, -1e30, Dtype::float64)));
        all.push_back(F::matmul(F::softmax(hidden, 2), head(v, shared)));
    }
    return link.out(F::concat(all, 2), 2);
}

void check_close(const Variable& got, const Variable& expected) {
    REQUIRE(got.shape() == expected.shape());
    const auto a = got.data().to_vector<double>(), b = expected.data().to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]));
}

// seen[i][j] = i + later >= j, and i - j < window.
Array triangle(std::int64_t rows, std::int64_t columns, std::int64_t later, std::int64_t window) {
    std::vector<std::uint8_t> bits;
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
            bits.push_back(i + later >= j && i - j < window ? 1 : 0);
    return Array::from(bits, {rows, columns}).astype(Dtype::bool8);
}

}  // namespace

TEST_CASE("attention of several heads is its definition") {
    seed(3);
    for (const std::int64_t kv_heads : {1, 2, 4}) {
        CAPTURE(kv_heads);
        const Variable x = draw({n, t, units}), context = draw({n, s, units});
        const MultiHeadAttention plain = make({.kv_heads = kv_heads});
        check_close(plain(x), definition(plain, x, x, triangle(t, t, t, t), kv_heads));
        check_close(plain(x, context),
                    definition(plain, x, context, triangle(t, s, s, t), kv_heads));
        const Array mask = triangle(t, s, 1, 2);
        check_close(plain(x, context, as_variable(mask)),
                    definition(plain, x, context, mask, kv_heads));
        const MultiHeadAttention causal = make({.kv_heads = kv_heads, .causal = true});
        check_close(causal(x), definition(causal, x, x, triangle(t, t, 0, t), kv_heads));
        const MultiHeadAttention window =
            make({.kv_heads = kv_heads, .bias = false, .causal = true, .window = 2});
        check_close(window(x), definition(window, x, x, triangle(t, t, 0, 2), kv_heads));
        CHECK(window.parameters().size() == 4);
    }
}

TEST_CASE("attention has gradients in x, the context and the parameters") {
    seed(4);
    for (const double rotary_base : {0.0, 100.0}) {
        const MultiHeadAttention link =
            make({.kv_heads = 2, .causal = true, .rotary = RotaryPositions(rotary_base)});
        const Array x = draw({n, t, units}).data(), context = draw({n, s, units}).data();
        gradient_check::check_backward(
            [&](const Variable& a, const Variable& b) { return link(a, b); }, {x, context},
            random::normal({n, t, units}, 0, 1, Dtype::float64),
            {.atol = 1e-5, .rtol = 1e-5, .params = link.parameters()});
    }
}

TEST_CASE("rotated scores depend on distances alone") {
    seed(5);
    const MultiHeadAttention link = make({.causal = true, .rotary = RotaryPositions(100)});
    // The last token sees the same distances with and without others before, which the window hides.
    const MultiHeadAttention window = [&] {
        MultiHeadAttention copy =
            make({.causal = true, .window = 3, .rotary = RotaryPositions(100)});
        copy.copy_parameters_from(link);
        return copy;
    }();
    const Variable x = draw({1, 6, units});
    const auto last = [&](const Variable& y) { return F::get_item(y, {slice(), -1}); };
    check_close(last(window(x)), last(link(F::get_item(x, {slice(), slice(3, {})}))));
}

TEST_CASE("padding after the lengths is not seen") {
    seed(6);
    const Variable x = draw({n, t, units}), context = draw({n, s, units});
    for (const double rotary_base : {0.0, 100.0}) {
        const MultiHeadAttention link =
            make({.kv_heads = 2, .rotary = RotaryPositions(rotary_base)});
        const MultiHeadAttention causal =
            make({.causal = true, .rotary = RotaryPositions(rotary_base)});
        const Variable lengths = as_variable(Array::from(std::vector<std::int64_t>{3, 2}, {n}));
        const Variable across = link(x, context, {}, lengths), own = causal(x, x, {}, lengths);
        for (std::int64_t row = 0; row < n; ++row) {
            const std::int64_t length = 3 - row;
            const auto part = [&](const Variable& of, std::int64_t end) {
                return F::get_item(of, {row, 0, 0}, {row + 1, end, units});
            };
            check_close(part(across, t), link(part(x, t), part(context, length)));
            check_close(part(own, length), causal(part(x, length)));
        }
    }
}

TEST_CASE("a mask of numbers is added to the scores") {
    seed(7);
    const MultiHeadAttention link = make({.kv_heads = 2}), causal = make({.causal = true});
    const Variable x = draw({n, t, units}), context = draw({n, s, units});
    const Array seen = triangle(t, s, 1, 2);
    const Array hidden = F::where(seen, Array::full({}, 0.0, Dtype::float32),
                                  Array::full({}, -INFINITY, Dtype::float32));
    check_close(link(x, context, as_variable(hidden)), link(x, context, as_variable(seen)));
    // Linear biases, also with a cache, whose places the mask covers.
    const Variable all = causal(x, x, as_variable(F::alibi(heads, t, t)));
    CHECK(all.data().to_vector<double>() != causal(x).data().to_vector<double>());
    auto cache = causal.make_cache(n, 6);
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 3}, {3, 4}}) {
        const auto part = [&](const Variable& of) {
            return F::get_item(of, {0, begin, 0}, {n, end, units});
        };
        const Variable mask = as_variable(F::alibi(heads, end - begin, 6, begin));
        check_close(causal(part(x), cache, mask), part(all));
    }
}

TEST_CASE("layers share a table of positions, in several threads") {
    seed(8);
    const RotaryPositions rotary(100);
    const Variable x = draw({n, t, heads, 2}), wide = draw({1, 40, heads, 4});
    const auto expected = rotary(x, 3).data().to_vector<double>();
    std::vector<std::vector<double>> got(4);
    std::vector<std::thread> threads;
    for (auto& result : got)
        threads.emplace_back([&] {
            for (std::int64_t offset = 0; offset < 200; offset += 7) {
                (void)RotaryPositions(rotary)(x, offset);
                (void)rotary(wide, offset);
            }
            result = rotary(x, 3).data().to_vector<double>();
        });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : got) CHECK(result == expected);
    CHECK(RotaryPositions(0)(x, 3).data().to_vector<double>() == x.data().to_vector<double>());
    CHECK_THROWS_AS((void)RotaryPositions(-1), InvalidError);
    CHECK_THROWS_AS((void)RotaryPositions(10, {.factor = -1}), InvalidError);
}

TEST_CASE("heads have a size of their own, and normalized queries and keys") {
    seed(9);
    const Variable x = draw({n, t, units});
    const MultiHeadAttention link =
        make({.kv_heads = 2, .head_size = 3, .causal = true, .norm_eps = 1e-3});
    CHECK(link.q.W.shape() == Shape{12, units});
    CHECK(link.v.W.shape() == Shape{6, units});
    CHECK(link.out.W.shape() == Shape{units, 12});
    CHECK(link.parameters().size() == 10);
    // The same by a link without normalization, one head at a time.
    const auto normal = [](const Variable& of, const links::RMSNormalization& norm) {
        const Variable square = F::mean(of * of, {2}, true);
        return of / F::sqrt(square + 1e-3) * norm.gamma;
    };
    const auto head = [&](const links::Linear& layer, std::int64_t i) {
        return F::get_item(layer(x, 2), {0, 0, i * 3}, {n, t, (i + 1) * 3});
    };
    std::vector<Variable> all;
    for (std::int64_t i = 0; i < heads; ++i) {
        const Variable scores = F::matmul(normal(head(link.q, i), *link.q_norm),
                                          normal(head(link.k, i / 2), *link.k_norm), false, true) /
                                std::sqrt(3.0);
        const Variable hidden = F::where(as_variable(triangle(t, t, 0, t)), scores,
                                         as_variable(Array::full({}, -1e30, Dtype::float64)));
        all.push_back(F::matmul(F::softmax(hidden, 2), head(link.v, i / 2)));
    }
    check_close(link(x), link.out(F::concat(all, 2), 2));
    auto cache = link.make_cache(n, t);
    CHECK(cache.k.shape() == Shape{n, t, 2, 3});
    check_close(link(x, cache), link(x));
    CHECK_THROWS_AS((void)MultiHeadAttention(8, 4, {.head_size = -1}), ShapeError);
    CHECK_THROWS_AS((void)MultiHeadAttention(8, 4, {.norm_eps = -1}), InvalidError);
    CHECK_THROWS_AS((void)MultiHeadAttention(8, 4, {.head_size = 3, .rotary = RotaryPositions(10)}),
                    ShapeError);
}

TEST_CASE("what is wrong with the sizes of attention") {
    CHECK(error_of<ShapeError>([] { (void)MultiHeadAttention(8, 3); }) ==
          "[MultiHeadAttention] heads: expected a divisor of the 8 units, got 3");
    CHECK(error_of<ShapeError>([] { (void)MultiHeadAttention(8, 4, {.kv_heads = 3}); }) ==
          "[MultiHeadAttention] kv_heads: expected a divisor of the 4 heads, got 3");
    CHECK(error_of<ShapeError>(
              [] { (void)MultiHeadAttention(6, 2, {.rotary = RotaryPositions(10)}); }) ==
          "[MultiHeadAttention] heads: expected an even number of units for each "
          "head with rotary positions, got 3");
    CHECK_THROWS_AS((void)MultiHeadAttention(8, 0), ShapeError);
    CHECK_THROWS_AS((void)MultiHeadAttention(8, 4, {.window = -1}), InvalidError);
    CHECK_THROWS_AS((void)MultiHeadAttention(8, 4, {.dropout = 1.5}), InvalidError);
    const MultiHeadAttention link(8, 4);
    CHECK_THROWS_AS((void)link(Variable(Array::ones({2, 3, 7}))), ShapeError);
    CHECK_THROWS_AS((void)link(Variable(Array::ones({3, 8}))), ShapeError);
    CHECK_THROWS_AS((void)link.make_cache(1, 0), ShapeError);
}
