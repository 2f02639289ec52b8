// Tests connection.catena (gradients compose functions of math, array and activation).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;
using catena::plugin::Ints;

namespace {

World& world() {
    static World world({CONNECTION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    return world;
}

}  // namespace

TEST_CASE("linear") {
    for (const Dims& shape : {Dims{4, 3}, Dims{1, 3}, Dims{2, 3, 1}, Dims{5, 1, 3}, Dims{0, 3}}) {
        const Array x = Array::random<double>(shape, 1);
        const Array w = Array::random<double>({5, 3}, 2);
        const Array b = Array::random<double>({5}, 3);
        CHECK(check(world(), {"catena.linear", {x, w, b}}) == "");
        CHECK(check(world(), {"catena.linear", {x, w, Array()}}) == "");
        const Array y = world().forward("catena.linear", {x, w, b})[0];
        CHECK(y.shape() == Dims{shape[0], 5});
        for (std::int64_t i = 0; i < y.size(); ++i) {
            double sum = b.at(i % 5);
            for (int k = 0; k < 3; ++k) sum += x.at(i / 5 * 3 + k) * w.at(i % 5 * 3 + k);
            CHECK(y.at(i) == doctest::Approx(sum));
        }
    }
    const Array x = Array::random<double>({4}, 1);
    CHECK(check(world(), {"catena.linear",
                          {x, Array::random<double>({2, 1}, 2), Array::random<double>({2}, 3)}}) ==
          "");
}

TEST_CASE("linear with several batch axes") {
    const Array w = Array::random<double>({5, 6}, 2);
    const Array b = Array::random<double>({5}, 3);
    const auto run = [&](const Array& x, std::int64_t n) {
        return world().forward("catena.linear", {x, w, b}, {set("n_batch_axes", n)})[0];
    };
    for (const auto& [shape, n] : {std::pair<Dims, std::int64_t>{{2, 3, 6}, 2},
                                   {{2, 3, 2, 3}, 2},
                                   {{2, 1, 3, 6}, 3},
                                   {{0, 3, 6}, 2},
                                   {{2, 0, 6}, 2}}) {
        const Array x = Array::random<double>(shape, 1);
        Dims lead(shape.begin(), shape.begin() + n);
        std::int64_t rows = 1;
        for (const std::int64_t d : lead) rows *= d;
        const Array y = world().forward("catena.linear", {x.reshaped({rows, 6}), w, b})[0];
        lead.push_back(5);
        CHECK(check(world(), {.function = "catena.linear",
                              .inputs = {x, w, b},
                              .attrs = {set("n_batch_axes", n)},
                              .expected = {y.reshaped(lead)}}) == "");
    }
    CHECK_THROWS_WITH(run(Array::random<double>({2, 6}, 1), 3),
                      "[catena.linear] x.ndim: expected at least 3, got 2");
    CHECK_THROWS_WITH(run(Array::random<double>({2, 6, 5}, 1), 2),
                      "[catena.linear] x.shape[2:]: expected 6 elements, as W.shape[1] says, got "
                      "(5,)");
}

TEST_CASE("the bias's gradient over many rows") {
    const Array x = Array::random<float>({3000, 2}, 1);
    const Array w = Array::random<float>({300, 2}, 2);
    const Array b = Array::random<float>({300}, 3);
    const Array gy = Array::random<float>({3000, 300}, 4);
    const auto y = world().forward("catena.linear", {x, w, b});
    Options options;
    options.targets = 4;
    const auto gx = world().backward("catena.linear", {x, w, b}, y, {gy}, {}, options);
    std::vector<double> sum(300, 0.0);
    for (std::int64_t i = 0; i < gy.size(); ++i) sum[static_cast<std::size_t>(i % 300)] += gy.at(i);
    CHECK(compare(gx[2], Array::from<double>(sum, {300}), {1e-5, 1e-5}) == "");
    options.threads = 4;
    CHECK(world().backward("catena.linear", {x, w, b}, y, {gy}, {}, options) == gx);
}

TEST_CASE("wrong shapes") {
    const auto message = [](const Dims& x, const Dims& w, const Dims& b) -> std::string {
        try {
            world().forward("catena.linear",
                            {Array::random<float>(x, 1), Array::random<float>(w, 1),
                             Array::random<float>(b, 1)});
        } catch (const Failure& e) {
            CHECK(e.status() == CATENA_E_SHAPE);
            return e.what();
        }
        return "";
    };
    CHECK(message({2, 3}, {5, 4}, {5}) ==
          "[catena.linear] x.shape[1:]: expected 4 elements, as W.shape[1] says, got (3,)");
    CHECK(message({2, 4}, {5, 4}, {4}) == "[catena.linear] b.shape: expected (5,), got (4,)");
    CHECK(message({2, 4}, {5}, {5}) == "[catena.linear] W.ndim: expected 2, got 1");
    CHECK(message({}, {5, 1}, {5}) == "[catena.linear] x.ndim: expected at least 1, got 0");
}

TEST_CASE("embed_id") {
    const Array w = Array::random<double>({4, 3}, 1);
    const auto ids32 = [](const Dims& shape, std::vector<std::int32_t> values) {
        return Array::from<std::int32_t>(values, shape);
    };
    const Array square = Array::from<std::int64_t>({3, 0, 3, 1}, {2, 2});
    CHECK(check(world(), {"catena.embed_id", {square, w}}) == "");
    CHECK(check(world(), {"catena.embed_id", {ids32({5}, {1, 1, 0, 3, 1}), w}}) == "");
    CHECK(check(world(), {"catena.embed_id", {ids32({}, {2}), w}}) == "");
    CHECK(check(world(), {"catena.embed_id", {ids32({0, 2}, {}), w}}) == "");
    CHECK(check(world(),
                {"catena.embed_id", {ids32({2}, {0, 1}), Array::random<double>({2, 0}, 1)}}) == "");
    for (const Dims& ignored : {Dims{1}, Dims{-1, 3}}) {
        const Attrs attrs = {set("ignore_label", Ints(ignored))};
        const Array ids = ids32({5}, {1, 3, 0, static_cast<std::int32_t>(ignored[0]), 1});
        CHECK(check(world(), {"catena.embed_id", {ids, w}, attrs}) == "");
        Attrs rows = attrs;
        rows.push_back(set("rows", std::int64_t{4}));
        CHECK(check(world(),
                    {"catena.embed_id_gradient", {ids, Array::random<double>({5, 3}, 2)}, rows}) ==
              "");
    }
    CHECK(check(world(), {"catena.embed_id_gradient",
                          {square, Array::random<double>({2, 2, 3}, 2)},
                          {set("rows", std::int64_t{5})}}) == "");
    const Array y = world().forward("catena.embed_id", {square, w})[0];
    CHECK(y.shape() == Dims{2, 2, 3});
    for (std::int64_t i = 0; i < 12; ++i)
        CHECK(y.at(i) == w.at(square.data<std::int64_t>()[i / 3] * 3 + i % 3));
}

TEST_CASE("embed_id: a gradient that is there keeps the rows that no id names") {
    Array ids({40, 3}, dtype_of<std::int32_t>());
    for (std::int32_t i = 0; i < 120; ++i) ids.data<std::int32_t>()[i] = i * i % 11;
    const Array w = Array::random<float>({200, 650}, 1);
    const auto y = world().forward("catena.embed_id", {ids, w});
    Options options;
    options.add = true;  // adds to ones
    const Array gw = world().backward("catena.embed_id", {ids, w}, y, y, {}, options)[1];
    options.threads = 3;
    CHECK(world().backward("catena.embed_id", {ids, w}, y, y, {}, options)[1] == gw);
    std::vector<double> expected(200 * 650, 1.0);
    for (std::int64_t i = 0; i < y[0].size(); ++i)
        expected[static_cast<std::size_t>(ids.data<std::int32_t>()[i / 650] * 650 + i % 650)] +=
            y[0].at(i);
    CHECK(compare(gw, Array::from<double>(expected, {200, 650}), {1e-5, 1e-5}) == "");
    CHECK(gw.at(11 * 650) == 1);
}

TEST_CASE("embed_id refuses") {
    const Array w = Array::random<float>({4, 3}, 1);
    const auto message = [&](const Array& ids, const Array& table, catena_status status) {
        try {
            world().forward("catena.embed_id", {ids, table});
        } catch (const Failure& e) {
            CHECK(e.status() == status);
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(message(Array::from<std::int32_t>({0, 3, 4, 9}, {2, 2}), w, CATENA_E_VALUE) ==
          "[catena.embed_id] x[1, 0]: expected an id from 0 to 3, got 4");
    CHECK(message(Array::from<std::int64_t>({-1}, {1}), w, CATENA_E_VALUE) ==
          "[catena.embed_id] x[0]: expected an id from 0 to 3, got -1");
    CHECK(message(Array::from<std::int64_t>({std::int64_t{1} << 40}, {}), w, CATENA_E_VALUE) ==
          "[catena.embed_id] x: expected an id from 0 to 3, got 1099511627776");
    CHECK(message(Array::from<std::int32_t>({0}, {1}), Array::random<float>({0, 3}, 1),
                  CATENA_E_VALUE) ==
          "[catena.embed_id] x[0]: expected no id, for W has no rows, got 0");
    CHECK(message(Array::from<std::int32_t>({0}, {1}), Array::random<float>({3}, 1),
                  CATENA_E_SHAPE) == "[catena.embed_id] W.ndim: expected 2, got 1");
    CHECK_THROWS_WITH(
        world().forward("catena.embed_id_gradient",
                        {Array::from<std::int32_t>({2}, {1}), Array::random<float>({1, 3}, 1)},
                        {set("rows", std::int64_t{2})}),
        "[catena.embed_id_gradient] x[0]: expected an id from 0 to 1, got 2");
}

namespace {

Array labels(std::vector<std::int32_t> values) {
    return Array::from<std::int32_t>(values, {static_cast<std::int64_t>(values.size())});
}
std::string tree_error(const char* tree) {
    try {
        world().forward(
            "catena.binary_hierarchical_softmax",
            {Array::random<float>({1, 2}, 1), labels({0}), Array::random<float>({1, 2}, 1)},
            {set("tree", tree)});
    } catch (const Failure& e) {
        CHECK(e.status() == CATENA_E_INVALID);
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("binary_hierarchical_softmax") {
    const std::string name = "catena.binary_hierarchical_softmax";
    const Attrs five = {set("tree", "[[0, 1], [2, [3, 4]]]")};
    const Array x = Array::random<double>({5, 3}, 1);
    const Array w = Array::random<double>({4, 3}, 2);
    CHECK(check(world(), {name, {x, labels({0, 4, 2, 2, 3}), w}, five}) == "");
    CHECK(check(world(), {name,
                          {Array::random<double>({1, 40}, 1), Array::from<std::int64_t>({3}, {1}),
                           Array::random<double>({4, 40}, 2)},
                          five}) == "");
    CHECK(check(world(), {name, {Array::random<double>({0, 3}, 1), labels({}), w}, five}) == "");
    // Labels are any integers; a tree may be a single leaf.
    CHECK(check(world(), {name,
                          {Array::random<double>({2, 3}, 1), labels({-7, 1000000}),
                           Array::random<double>({1, 3}, 2)},
                          {set("tree", " [ -7 ,\n1000000 ] ")}}) == "");
    const Array none = Array::random<double>({0, 3}, 2);
    CHECK(check(world(), {name,
                          {Array::random<double>({2, 3}, 1), labels({3, 3}), none},
                          {set("tree", "3")}}) == "");
    // Code -1 is left, +1 is right; the probabilities of all leaves sum to 1.
    double sum = 0;
    for (std::int32_t label = 0; label < 5; ++label) {
        const Array one = Array::from<double>({0.5, -1, 2}, {1, 3});
        const double loss = world().forward(name, {one, labels({label}), w}, five)[0].at(0);
        sum += std::exp(-loss);
        const auto term = [&](int node, double code) {
            double z = 0;
            for (int k = 0; k < 3; ++k) z += w.at(node * 3 + k) * one.at(k);
            return std::log1p(std::exp(-code * z));
        };
        if (label == 1) CHECK(loss == doctest::Approx(term(0, -1) + term(1, 1)).epsilon(1e-12));
        if (label == 3)
            CHECK(loss == doctest::Approx(term(0, 1) + term(2, 1) + term(3, -1)).epsilon(1e-12));
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    // A certain step causes neither overflow nor NaN.
    const Array far = Array::from<float>({1e4f}, {1, 1});
    const Array steep = Array::from<float>({1e3f}, {1, 1});
    const Attrs two = {set("tree", "[0,1]")};
    const auto sure = world().forward(name, {far, labels({1}), steep}, two);
    CHECK(sure[0].at(0) == 0);
    const auto wrong = world().forward(name, {far, labels({0}), steep}, two);
    CHECK(wrong[0].at(0) == doctest::Approx(1e7));
    for (const double score : {-1e30, 1e30, HUGE_VAL, std::nan("")}) {
        const auto loss = world()
                              .forward(name,
                                       {Array::from<float>({static_cast<float>(score)}, {1, 1}),
                                        labels({0}), Array::from<float>({1}, {1, 1})},
                                       two)[0]
                              .at(0);
        CHECK((std::isnan(score) ? std::isnan(loss) : loss == std::max(float(score), 0.0F)));
    }
    const Array gy = Array::from<float>({1}, {});
    CHECK(world().backward(name, {far, labels({0}), steep}, wrong, {gy}, two)[0].at(0) == 1e3);
    CHECK(world().backward(name, {far, labels({1}), steep}, sure, {gy}, two)[0].at(0) == 0);
}

TEST_CASE("binary_hierarchical_softmax: deep trees, many samples, several threads") {
    // A chain: each left child is a leaf. A recursive parser would need a deep call stack.
    const int words = 3000;
    std::string text;
    for (int i = 0; i + 1 < words; ++i) text += "[" + std::to_string(i) + ",";
    text += std::to_string(words - 1) + std::string(words - 1, ']');
    const Attrs attrs = {set("tree", text.c_str())};
    Array t({300}, dtype_of<std::int32_t>());
    for (std::int32_t i = 0; i < 300; ++i) t.data<std::int32_t>()[i] = i * 37 % words;
    const Array x = Array::random<float>({300, 5}, 1);
    const Array w = Array::random<float>({words - 1, 5}, 2);
    const std::string name = "catena.binary_hierarchical_softmax";
    const auto y = world().forward(name, {x, t, w}, attrs);
    const Array gy = Array::from<float>({1}, {});
    const auto gx = world().backward(name, {x, t, w}, y, {gy}, attrs);
    Options options;
    options.threads = 3;
    CHECK(world().forward(name, {x, t, w}, attrs, options) == y);
    CHECK(world().backward(name, {x, t, w}, y, {gy}, attrs, options) == gx);
    const auto exact = world().gradient(name, {x, t, w}, y, {gy}, attrs);
    CHECK(compare(gx[0], exact[0], {1e-4, 1e-3}) == "");
    CHECK(compare(gx[2], exact[2], {1e-4, 1e-4}) == "");
    // More trees than the plugin caches.
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 20; ++i) {
            const std::string pair = "[0," + std::to_string(i + 1) + "]";
            const Attrs small = {set("tree", pair.c_str())};
            CHECK_NOTHROW(world().forward(
                name,
                {Array::random<float>({1, 2}, 1), labels({i + 1}), Array::random<float>({1, 2}, 1)},
                small));
        }
}

TEST_CASE("binary_hierarchical_softmax refuses") {
    CHECK(tree_error("[0, 1]") == "");
    const std::string at = "[catena.binary_hierarchical_softmax] tree at ";
    CHECK(tree_error("") == at + "0: expected a whole number or '[', got the end");
    CHECK(tree_error("[0]") == at + "2: expected ',', got ']'");
    CHECK(tree_error("[0, 1, 2]") == at + "5: expected ']', got ','");
    CHECK(tree_error("[0, 1") == at + "5: expected ']', got the end");
    CHECK(tree_error("[0, 1] 2") == at + "7: expected the end, got '2'");
    CHECK(tree_error("[0, \"a\"]") == at + "4: expected a whole number or '[', got '\"'");
    CHECK(tree_error("[0, 1.5]") == at + "5: expected ']', got '.'");
    CHECK(tree_error("[0, 99999999999999999999]") ==
          at + "4: expected a whole number or '[', got '9'");
    CHECK(tree_error("[0, []]") == at + "5: expected a whole number or '[', got ']'");
    CHECK(tree_error("[[0, 1], [2, 0]]") == at + "13: expected each label once, got 0");

    const auto message = [](const Dims& x, const Array& t, const Dims& w) -> std::string {
        try {
            world().forward("catena.binary_hierarchical_softmax",
                            {Array::random<float>(x, 1), t, Array::random<float>(w, 1)},
                            {set("tree", "[0, [1, 2]]")});
        } catch (const Failure& e) {
            return e.what();
        }
        return "";
    };
    const std::string who = "[catena.binary_hierarchical_softmax] ";
    CHECK(message({2, 3}, labels({0, 3}), {2, 3}) ==
          who + "t[1]: expected a label of the tree, got 3");
    CHECK(message({2, 3}, labels({0, 1}), {3, 3}) == who + "W.shape: expected (2, 3), got (3, 3)");
    CHECK(message({2, 3}, labels({0, 1}), {2, 4}) == who + "W.shape: expected (2, 3), got (2, 4)");
    CHECK(message({2, 3}, labels({0}), {2, 3}) == who + "t.shape: expected (2,), got (1,)");
    CHECK(message({2}, labels({0, 1}), {2, 3}) == who + "x.ndim: expected 2, got 1");
}

TEST_CASE("bilinear refuses shapes that do not fit") {
    const auto f = [](const char* change, const Dims& shape) {
        const std::string names[] = {"e1", "e2", "W", "V1", "V2", "b"};
        const Dims shapes[] = {{2, 3}, {2, 2, 2}, {3, 4, 2}, {3, 2}, {4, 2}, {2}};
        std::vector<Array> x;
        for (unsigned i = 0; i < 6; ++i)
            x.push_back(Array::random<double>(names[i] == change ? shape : shapes[i], i));
        return world().forward("catena.bilinear", x)[0].shape();
    };
    CHECK(f("", {}) == Dims{2, 2});
    CHECK_THROWS_WITH(f("e2", {4, 2}), "[catena.bilinear] e2.shape: expected (2, 2), got (4, 2)");
    CHECK_THROWS_WITH(f("W", {2, 1, 5}),
                      "[catena.bilinear] W.shape: expected (3, 4, 5), got (2, 1, 5)");
    CHECK_THROWS_WITH(f("V1", {1, 2}), "[catena.bilinear] V1.shape: expected (3, 2), got (1, 2)");
    CHECK_THROWS_WITH(f("V2", {3, 2}), "[catena.bilinear] V2.shape: expected (4, 2), got (3, 2)");
    CHECK_THROWS_WITH(f("b", {1}), "[catena.bilinear] b.shape: expected (2,), got (1,)");
    CHECK_THROWS_WITH(f("b", {2, 2}), "[catena.bilinear] b.shape: expected (2,), got (2, 2)");
}

TEST_CASE("simplified_dropconnect refuses shapes that do not fit") {
    const auto f = [](const Dims& w, const Dims& b) {
        return world().forward("catena.simplified_dropconnect",
                               {Array::random<double>({2, 3}, 1), Array::random<double>(w, 2),
                                Array::random<double>(b, 3), Array()});
    };
    CHECK_THROWS_WITH(f({4, 2}, {4}),
                      "[catena.simplified_dropconnect] W.shape: expected (4, 3), got (4, 2)");
    CHECK_THROWS_WITH(f({4, 3}, {1}),
                      "[catena.simplified_dropconnect] b.shape: expected (4,), got (1,)");
}
