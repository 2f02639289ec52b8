// Tests attention: compared with its definition, over several tiles of queries and blocks of keys.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace catena::testing;
using catena::plugin::dtype_of;

namespace {

const std::string name = "catena.scaled_dot_product_attention";
constexpr double inf = std::numeric_limits<double>::infinity();

World& world() {
    static World world({ATTENTION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    return world;
}

struct Sample {
    std::int64_t b, h, hk, t, s, d, e;
    bool causal = false;
    std::int64_t window = 0, offset = 0;
    Dims mask = {};  // of the bias, with some -inf, or of the mask
    bool bool_mask = false;
    std::vector<std::int64_t> lengths = {};
    bool heads_last = false;

    Attrs attrs(double dropout = 0) const {
        return {set("causal", causal),   set("window", window),
                set("offset", offset),   set("layout", heads_last ? "BTHD" : "BHTD"),
                set("dropout", dropout), set("scale", 0.3)};
    }
    Array random(std::int64_t heads, std::int64_t rows, std::int64_t size, unsigned seed) const {
        return heads_last ? Array::random<double>({b, rows, heads, size}, seed, -2, 2)
                          : Array::random<double>({b, heads, rows, size}, seed, -2, 2);
    }
    std::vector<Array> inputs() const {
        std::vector<Array> x = {random(h, t, d, 1),
                                random(hk, s, d, 2),
                                random(hk, s, e, 3),
                                Array(),
                                Array(),
                                Array()};
        if (!mask.empty()) {
            Array bias = Array::random<double>(mask, 4, -3, 3);
            for (std::int64_t i = 0; i < bias.size(); i += 3) bias.set(i, -inf);
            if (!bool_mask) x[3] = bias;
            else x[4] = Array(mask, dtype_of<bool>());
            for (std::int64_t i = 0; bool_mask && i < bias.size(); ++i) x[4].set(i, bias.at(i) > 0);
        }
        if (!lengths.empty()) x[5] = Array::from<std::int64_t>(lengths, {b});
        return x;
    }
    std::int64_t at(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t heads,
                    std::int64_t rows, std::int64_t size) const {
        return ((heads_last ? batch * rows + row : batch * heads + head) *
                    (heads_last ? heads : rows) +
                (heads_last ? head : row)) *
               size;
    }
    // Returns y by the definition.
    Array expected(const std::vector<Array>& x) const {
        Array y(heads_last ? Dims{b, t, h, e} : Dims{b, h, t, e}, dtype_of<double>());
        for (std::int64_t n = 0; n < b; ++n)
            for (std::int64_t head = 0; head < h; ++head)
                for (std::int64_t row = 0; row < t; ++row) {
                    const std::int64_t shared = head / (h / hk);
                    const std::int64_t keys =
                        lengths.empty() ? s : std::clamp<std::int64_t>(lengths[n], 0, s);
                    const std::int64_t place = row + (offset < 0 ? keys - t : offset);
                    double total = 0, most = -inf;
                    std::vector<double> scores(static_cast<std::size_t>(s), -inf);
                    for (std::int64_t j = 0; j < keys; ++j) {
                        if (causal && j > place) continue;
                        if (window > 0 && j <= place - window) continue;
                        double score =
                            mask.empty() ? 0 : mask_value(x[bool_mask ? 4 : 3], {n, head, row, j});
                        for (std::int64_t i = 0; i < d; ++i)
                            score += 0.3 * x[0].at(at(n, head, row, h, t, d) + i) *
                                     x[1].at(at(n, shared, j, hk, s, d) + i);
                        scores[static_cast<std::size_t>(j)] = score;
                        most = std::max(most, score);
                    }
                    if (most == -inf) most = 0;
                    for (double& score : scores) total += score = std::exp(score - most);
                    for (std::int64_t i = 0; i < e; ++i) {
                        double sum = 0;
                        for (std::int64_t j = 0; j < s; ++j)
                            sum += scores[static_cast<std::size_t>(j)] *
                                   x[2].at(at(n, shared, j, hk, s, e) + i);
                        y.set(at(n, head, row, h, t, e) + i, total == 0 ? 0 : sum / total);
                    }
                }
        return y;
    }
    double mask_value(const Array& m, const Dims& index) const {
        std::int64_t i = 0;
        for (std::size_t axis = 0; axis < mask.size(); ++axis)
            i = i * mask[axis] + (mask[axis] == 1 ? 0 : index[4 - mask.size() + axis]);
        return bool_mask ? (m.at(i) != 0 ? 0 : -inf) : m.at(i);
    }
};

const Sample samples[] = {
    {.b = 2, .h = 2, .hk = 2, .t = 70, .s = 90, .d = 8, .e = 5},
    {.b = 1, .h = 2, .hk = 2, .t = 150, .s = 150, .d = 3, .e = 17, .causal = true},
    {.b = 1, .h = 1, .hk = 1, .t = 70, .s = 150, .d = 20, .e = 4, .causal = true, .offset = 80},
    {.b = 1, .h = 4, .hk = 2, .t = 130, .s = 70, .d = 4, .e = 4, .causal = true, .offset = -1},
    {.b = 2, .h = 4, .hk = 1, .t = 5, .s = 150, .d = 4, .e = 4, .causal = true, .offset = -1},
    {.b = 1, .h = 6, .hk = 2, .t = 9, .s = 40, .d = 1, .e = 1, .window = 7, .offset = 20},
    {.b = 1, .h = 1, .hk = 1, .t = 200, .s = 200, .d = 2, .e = 2, .causal = true, .window = 50},
    {.b = 2, .h = 2, .hk = 2, .t = 40, .s = 70, .d = 4, .e = 4, .mask = {2, 1, 40, 70}},
    {.b = 2, .h = 2, .hk = 2, .t = 40, .s = 70, .d = 4, .e = 4, .mask = {2, 1, 70}},
    {.b = 2, .h = 4, .hk = 2, .t = 3, .s = 70, .d = 4, .e = 4, .mask = {4, 3, 1}},
    {.b = 2,
     .h = 2,
     .hk = 1,
     .t = 70,
     .s = 40,
     .d = 4,
     .e = 4,
     .mask = {70, 40},
     .bool_mask = true},
    {.b = 2,
     .h = 2,
     .hk = 1,
     .t = 2,
     .s = 40,
     .d = 4,
     .e = 4,
     .mask = {2, 2, 1, 40},
     .bool_mask = true},
    {.b = 3, .h = 2, .hk = 2, .t = 70, .s = 90, .d = 4, .e = 4, .lengths = {40, 0, 200}},
    {.b = 2,
     .h = 2,
     .hk = 2,
     .t = 4,
     .s = 90,
     .d = 4,
     .e = 4,
     .causal = true,
     .offset = -1,
     .lengths = {40, 70}},
    {.b = 2,
     .h = 4,
     .hk = 2,
     .t = 70,
     .s = 70,
     .d = 4,
     .e = 3,
     .causal = true,
     .lengths = {70, 33},
     .heads_last = true},
    {.b = 1, .h = 1, .hk = 1, .t = 1, .s = 700, .d = 18, .e = 66, .heads_last = true},
    {.b = 1,
     .h = 2,
     .hk = 1,
     .t = 1,
     .s = 700,
     .d = 16,
     .e = 5,
     .window = 600,
     .offset = -1,
     .mask = {1, 2, 1, 700}},
    {.b = 1, .h = 1, .hk = 1, .t = 66, .s = 1200, .d = 4, .e = 4, .causal = true, .offset = 1000},
};

std::vector<Array> halves(const std::vector<Array>& x, catena_dtype dtype) {
    std::vector<Array> result;
    for (const Array& a : x)
        result.push_back(a && a.dtype().code == CATENA_CODE_FLOAT ? a.to(dtype) : a);
    return result;
}

}  // namespace

TEST_CASE("attention: by the definition, with every instruction set") {
    for (const Sample& s : samples) {
        CAPTURE(&s - samples);
        const auto x = s.inputs();
        const auto y = world().forward(name, x, s.attrs());
        CHECK(compare(y[0], s.expected(x), {1e-12, 1e-13}) == "");
        std::vector<Array> gy = {Array::random<double>(y[0].shape(), 9), Array(), Array(), Array()};
        const auto gx = world().gradient(name, x, y, gy, s.attrs());
        for (const char* isa : world().isas(name)) {
            CAPTURE(isa);
            Options options;
            options.isa = isa;
            const auto again = world().forward(name, x, s.attrs(), options);
            CHECK(compare(again[0], y[0], {1e-12, 1e-13}) == "");
            CHECK(compare(world().backward(name, x, y, gy, s.attrs(), options), gx,
                          {1e-11, 1e-12}) == "");
            const auto narrow = halves(x, dtype_of<float>());
            const auto narrow_y = world().forward(name, narrow, s.attrs(), options);
            CHECK(compare(narrow_y[0].to(dtype_of<double>()), y[0], {1e-4, 1e-5}) == "");
            const auto narrow_gx = world().backward(
                name, narrow, narrow_y, halves(gy, dtype_of<float>()), s.attrs(), options);
            for (std::size_t i = 0; i < gx.size(); ++i)
                if (gx[i])
                    CHECK(compare(narrow_gx[i].to(dtype_of<double>()), gx[i], {1e-3, 1e-4}) == "");
        }
    }
}

TEST_CASE("attention: bit-identical for any number of threads") {
    for (const Sample& s : samples) {
        const auto x = halves(s.inputs(), dtype_of<float>());
        Options one, three;
        three.threads = 3;
        const auto y = world().forward(name, x, s.attrs(), one);
        CHECK(world().forward(name, x, s.attrs(), three) == y);
        const std::vector<Array> gy = {Array::random<double>(y[0].shape(), 9).to(dtype_of<float>()),
                                       Array(), Array(), Array()};
        CHECK(world().backward(name, x, y, gy, s.attrs(), one) ==
              world().backward(name, x, y, gy, s.attrs(), three));
    }
}

TEST_CASE("attention: dropout") {
    for (const Sample& s : samples) {
        CAPTURE(&s - samples);
        const auto x = s.inputs();
        world().drawn = 5;
        const auto y = world().forward(name, x, s.attrs(0.4));
        const std::vector<Array> gy = {Array::random<double>(y[0].shape(), 9), Array(), Array(),
                                       Array()};
        // The composition and the kernels draw the same numbers.
        CHECK(compare(world().backward(name, x, y, gy, s.attrs(0.4)),
                      world().gradient(name, x, y, gy, s.attrs(0.4)), {1e-11, 1e-12}) == "");
        Options options;
        options.train = false;
        CHECK(compare(world().forward(name, x, s.attrs(0.4), options)[0], s.expected(x),
                      {1e-12, 1e-13}) == "");
    }
    // With equal weights and v = 1, y is the mean of the factors of dropout.
    const Array zero = Array::constant({2, 2, 100, 4}, dtype_of<double>(), 0);
    const Array one = Array::constant({2, 2, 100, 4}, dtype_of<double>(), 1);
    const Array y = world().forward(name, {zero, zero, one}, {set("dropout", 0.25)})[0];
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < y.size(); i += 4) {
        CHECK(std::abs(y.at(i) * 75 - std::round(y.at(i) * 75)) < 1e-9);  // 4/3 times n/100
        sum += y.at(i), squares += y.at(i) * y.at(i);
    }
    CHECK(std::abs(sum / 400 - 1) < 0.01);
    // The variance of the mean of 100 factors is ratio / (1 - ratio) / 100.
    CHECK(std::abs(squares / 400 - sum * sum / 160000 - 1.0 / 300) < 0.0008);
}

TEST_CASE("attention: all gradients, to the second order") {
    for (std::size_t i = 0; i < std::size(samples); ++i) {
        Sample s = samples[i];                          // the same options, with small shapes
        if (!s.mask.empty() && !s.bool_mask) continue;  // -inf has no finite differences
        s.t = std::min<std::int64_t>(s.t, 3), s.s = std::min<std::int64_t>(s.s, 4);
        s.d = std::min<std::int64_t>(s.d, 3), s.e = std::min<std::int64_t>(s.e, 2);
        s.window = std::min<std::int64_t>(s.window, 2),
        s.offset = std::min<std::int64_t>(s.offset, 1);
        for (std::int64_t& n : s.lengths) n = std::min<std::int64_t>(n, 3);
        for (std::size_t axis = 0; axis < s.mask.size(); ++axis)
            if (s.mask[axis] != 1)
                s.mask[axis] = Dims{s.b, s.h, s.t, s.s}[4 - s.mask.size() + axis];
        CAPTURE(i);
        const auto x = s.inputs();
        CHECK(check(world(), {.function = name,
                              .inputs = x,
                              .attrs = s.attrs(),
                              .expected = {s.expected(x), Array(), Array(), Array()},
                              .edges = false}) == "");
    }
    for (const Dims& bias :
         {Dims{1}, Dims{2, 1, 1, 4}, Dims{4, 3, 1}, Dims{2, 4, 3, 4}, Dims{3, 4}})
        CHECK(check(world(), {.function = name,
                              .inputs = {Array::random<double>({2, 4, 3, 2}, 1),
                                         Array::random<double>({2, 2, 4, 2}, 2),
                                         Array::random<double>({2, 2, 4, 3}, 3),
                                         Array::random<double>(bias, 4)},
                              .attrs = {set("causal", true), set("offset", 1)},
                              .edges = false}) == "");
}

TEST_CASE("attention: queries that see no key, huge scores, NaN, inf") {
    const Array q = Array::from<double>({1, 2}, {1, 1, 2, 1});
    const Array v = Array::from<double>({3, 5}, {1, 1, 2, 1});
    Array seen({2, 2}, dtype_of<bool>());
    for (std::int64_t i = 0; i < 4; ++i) seen.set(i, i > 1);
    const Array bias = Array::from<double>({-inf, -inf, 0, 0}, {2, 2});
    for (const std::vector<Array>& x :
         {std::vector<Array>{q, q, v, Array(), seen}, std::vector<Array>{q, q, v, bias}}) {
        const auto y = world().forward(name, x, {set("scale", 1e-20)});
        CHECK(compare(y[0], Array::from<double>({0, 4}, {1, 1, 2, 1}), {1e-12, 0}) == "");
        CHECK(y[1].at(0) == inf);
        const std::vector<Array> gy = {Array::constant({1, 1, 2, 1}, dtype_of<double>(), 1),
                                       Array(), Array(), Array()};
        const auto gx = world().backward(name, x, y, gy, {set("scale", 1e-20)});
        CHECK(compare(gx, world().gradient(name, x, y, gy, {set("scale", 1e-20)}), {1e-12, 0}) ==
              "");
        CHECK(gx[0].at(0) == 0);
    }
    const auto of = [&](double a, double b) {
        return world().forward(name, {Array::from<double>({1}, {1, 1, 1, 1}),
                                      Array::from<double>({a, b}, {1, 1, 2, 1}), v})[0];
    };
    CHECK(of(1e5, 1e5).at(0) == 4);
    CHECK(of(-1e5, -1e300).at(0) == 3);
    CHECK(of(-1e300, 1e300).at(0) == 5);
    CHECK(std::isnan(of(std::nan(""), 1).at(0)));
    CHECK(of(-inf, 1).at(0) == 5);
    // Many tiles: the last queries see the largest scores.
    const std::int64_t n = 200;
    Array k({1, 1, n, 1}, dtype_of<double>()),
        one = Array::constant({1, 1, n, 1}, dtype_of<double>(), 1);
    for (std::int64_t i = 0; i < n; ++i) k.set(i, 1000.0 * static_cast<double>(i));
    const Array y = world().forward(name, {one, k, k}, {set("causal", true)})[0];
    CHECK(compare(y, k, {1e-12, 0}) == "");
}

TEST_CASE("attention: gradients of a finite bias, however low") {
    // The first query sees two keys with such a bias, and not the last one.
    for (const catena_dtype dtype :
         {dtype_of<float>(), dtype_of<double>(), dtype_of<catena::plugin::Float16>(),
          dtype_of<catena::plugin::BFloat16>()}) {
        const bool is_float16 = dtype.bits == 16 && dtype.code == CATENA_CODE_FLOAT;
        const double low = is_float16 ? -65504 : dtype.bits == 64 ? -1.797e308 : -3.38e38;
        CAPTURE(low);
        const auto of = [&](const std::vector<double>& values, const Dims& shape) {
            return Array::from<double>(values, shape).to(dtype);
        };
        const std::vector<Array> x = {of({1, 2}, {1, 1, 2, 1}), of({1, 1, 3}, {1, 1, 3, 1}),
                                      of({3, 5, 100}, {1, 1, 3, 1}),
                                      of({low, low, low, low, 0, -inf}, {2, 3})};
        const Attrs attrs = {set("causal", true), set("offset", 1)};
        const auto y = world().forward(name, x, attrs);
        CHECK(y[0].to(dtype_of<double>()).values<double>() == std::vector<double>{4, 5});
        const auto gx = world().gradient(
            name, x, y, {of({1, 1}, {1, 1, 2, 1}), Array(), Array(), Array()}, attrs);
        const std::vector<double> expected[] = {
            {0, 0}, {-0.5, 0.5, 0}, {0.5, 1.5, 0}, {-0.5, 0.5, 0, 0, 0, 0}};
        for (std::size_t i = 0; i < 4; ++i)
            CHECK(compare(gx[i], of(expected[i], x[i].shape()), {1e-6, 0}) == "");
    }
}

TEST_CASE("attention: empty axes") {
    for (const Dims& size :
         {Dims{0, 2, 3, 4}, Dims{2, 0, 3, 4}, Dims{2, 2, 0, 4}, Dims{2, 2, 3, 0}})
        for (const std::int64_t e : {0, 2}) {
            const Array q = Array::random<double>({size[0], size[1], size[2], 3}, 1);
            const Array k = Array::random<double>({size[0], size[1], size[3], 3}, 2);
            const Array v = Array::random<double>({size[0], size[1], size[3], e}, 3);
            const Array mask = Array::random<double>({size[2], size[3]}, 4);
            const auto y = world().forward(name, {q, k, v, mask});
            CHECK(compare(y[0],
                          Array::constant({size[0], size[1], size[2], e}, dtype_of<double>(), 0),
                          {0, 0}) == "");
            const std::vector<Array> gy = {y[0], Array(), Array(), Array()};
            const auto gx = world().backward(name, {q, k, v, mask}, y, gy);
            CHECK(gx == world().gradient(name, {q, k, v, mask}, y, gy));
            for (std::int64_t i = 0; i < gx[1].size(); ++i) CHECK(gx[1].at(i) == 0);
        }
}

TEST_CASE("attention: errors") {
    const auto refused = [](const std::vector<Dims>& shapes, const Attrs& attrs,
                            const std::string& error) {
        std::vector<Array> x;
        for (const Dims& shape : shapes)
            x.push_back(Array(shape, x.size() == 5   ? dtype_of<std::int64_t>()
                                     : x.size() == 4 ? dtype_of<bool>()
                                                     : dtype_of<double>()));
        CHECK(check(world(), {.function = name,
                              .inputs = x,
                              .attrs = attrs,
                              .error = "[" + name + "] " + error}) == "");
    };
    const Dims q = {2, 4, 3, 5}, k = {2, 2, 6, 5}, v = {2, 2, 6, 7};
    refused({{4, 3, 5}, k, v}, {}, "q.ndim: expected 4, got 3");
    refused({q, k, {2, 2, 6}}, {}, "v.ndim: expected 4, got 3");
    refused({{2, 4, 3, 0}, {2, 2, 6, 0}, v}, {}, "q.shape[3]: expected at least 1, got 0");
    refused({q, {1, 2, 6, 5}, v}, {}, "k.shape[0]: expected 2, got 1");
    refused({q, {2, 2, 6, 4}, v}, {}, "k.shape[3]: expected 5, got 4");
    refused({q, {2, 3, 6, 5}, v}, {}, "k.shape[1]: expected a divisor of 4, got 3");
    refused({q, {2, 0, 6, 5}, v}, {}, "k.shape[1]: expected a divisor of 4, got 0");
    refused({q, k, v}, {set("layout", "BTHD")}, "k.shape[2]: expected a divisor of 3, got 6");
    refused({q, k, {2, 2, 5, 7}}, {}, "v.shape[2]: expected 6, got 5");
    refused({q, k, v, {2, 4, 2, 6}}, {}, "bias.shape[2]: expected 1 or 3, got 2");
    refused({q, k, v, {1, 2, 4, 3, 6}}, {}, "bias.ndim: expected at most 4, got 5");
    refused({q, k, v, {3, 6}, {5}}, {}, "mask.shape[0]: expected 1 or 6, got 5");
    refused({q, k, v, {3, 6}, {6}, {3}}, {}, "lengths.shape: expected (2,), got (3,)");
    refused({q, k, v}, {set("dropout", 1.0)}, "dropout: expected less than 1, got 1");
    refused({q, k, v}, {set("layout", "HTBD")},
            "attribute 'layout': expected one of BHTD, BTHD, got 'HTBD'");
    refused({q, k, v}, {set("offset", -2)}, "attribute 'offset': expected -1 to");
}

TEST_CASE("rotary embedding") {
    const std::string rotary = "catena.rotary_embedding";
    const Array half = Array::from<double>({0.5, 0.25}, {2, 1}),
                one = Array::from<double>({2, 4}, {2, 1});
    const Array x = Array::from<double>({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3});
    CHECK(check(world(), {.function = rotary,
                          .inputs = {x, half, one},
                          .expected = {Array::from<double>(
                              {0.5 - 4, 1 + 2, 3, 1 - 20, 1.25 + 16, 6}, {1, 1, 2, 3})},
                          .edges = false}) == "");
    CHECK(check(world(), {.function = rotary,
                          .inputs = {x, half, one, Array::from<std::int64_t>({1, 0}, {1, 2})},
                          .attrs = {set("inverse", true)},
                          .expected = {Array::from<double>(
                              {0.25 + 8, 0.5 - 4, 3, 2 + 10, 2.5 - 8, 6}, {1, 1, 2, 3})},
                          .edges = false}) == "");
    // Both kinds of pairs, by the same tables; both orders of the axes.
    const Array many = Array::random<double>({2, 3, 2, 9}, 1);
    const Array cos = Array::random<double>({5, 4}, 2), sin = Array::random<double>({5, 4}, 3);
    for (const bool interleaved : {false, true}) {
        const Array y = world().forward(
            rotary, {many, cos, sin},
            {set("interleaved", interleaved), set("offset", 1), set("layout", "BTHD")})[0];
        for (std::int64_t row = 0; row < 12; ++row)
            for (std::int64_t i = 0; i < 4; ++i) {
                const std::int64_t a = row * 9 + (interleaved ? 2 * i : i);
                const std::int64_t b = interleaved ? a + 1 : a + 4, t = row / 2 % 3 + 1;
                const double c = cos.at(t * 4 + i), s = sin.at(t * 4 + i);
                CHECK(std::abs(y.at(a) - (many.at(a) * c - many.at(b) * s)) < 1e-14);
                CHECK(std::abs(y.at(b) - (many.at(b) * c + many.at(a) * s)) < 1e-14);
            }
    }
    const auto refused = [&](const std::vector<Array>& in, const Attrs& attrs, const char* error) {
        CHECK(check(world(), {.function = rotary, .inputs = in, .attrs = attrs, .error = error}) ==
              "");
    };
    refused({x.reshaped({2, 3}), half, one}, {}, "x.ndim: expected 4, got 2");
    refused({x, half.reshaped({2}), one}, {}, "cos.ndim: expected 2, got 1");
    refused({x, Array::random<double>({2, 2}, 1), Array::random<double>({2, 2}, 1)}, {},
            "cos.shape[1]: expected at most 1, got 2");
    refused({x, half, one.reshaped({1, 2})}, {}, "sin.shape: expected (2, 1), got (1, 2)");
    refused({x, half, one}, {set("offset", 1)}, "cos.shape[0]: expected at least 3, got 2");
    refused({x, half, one, Array::from<std::int64_t>({1}, {1, 1})}, {},
            "positions.shape: expected (1, 2), got (1, 1)");
    for (const std::int64_t wrong : {-1, 2})
        CHECK_THROWS_WITH(
            world().forward(rotary, {x, half, one, Array::from<std::int64_t>({0, wrong}, {1, 2})}),
            ("[catena.rotary_embedding] positions[1]: expected 0 to 1, got " +
             std::to_string(wrong))
                .c_str());
}
