// Average pooling and normalisations on oneDNN against the portable ones.
#include "compare.hpp"

#include <cmath>

using namespace onednn_test;

namespace {

using Ints = std::vector<std::int64_t>;
using catena::plugin::text_of;

struct Pooling {
    Dims x;
    Ints ksize;
    Ints stride;
    Ints pad;
};

const Pooling poolings[] = {
    {{5, 32, 24, 24}, {2}, {}, {0}},
    {{3, 17, 29, 31}, {3}, {2}, {1}},
    {{20, 7, 30, 25}, {3, 2}, {2, 1}, {1, 0}},
    {{1, 64, 14, 14}, {3}, {1}, {1}},
    {{7, 20, 40, 41}, {5}, {3}, {2}},
    {{32, 65, 8, 8}, {8}, {1}, {0}},
    {{1, 1, 1, 1}, {1}, {1}, {0}},
    {{3, 5, 4, 7}, {2}, {}, {1}},
};

const char* const pool = "catena.average_pooling_2d";
const char* const spread = "catena.average_pooling_2d_grad";
const char* const lrn = "catena.local_response_normalization";
const char* const batch = "catena.batch_normalization";
const char* const fixed = "catena.fixed_batch_normalization";
const char* const pooling = "org.catena.pooling";
const char* const normalization = "org.catena.normalization";

Options pinned() {
    Options options;
    options.plugin = onednn_id;
    return options;
}

// x, gamma, beta, mean and var.
std::vector<Array> normalized(const Dims& shape) {
    const Dims c = {shape[1]};
    return {Array::random<double>(shape, 1, -2, 3), Array::random<double>(c, 2, 0.5, 1.5),
            Array::random<double>(c, 3), Array::random<double>(c, 4),
            Array::random<double>(c, 5, 0.5, 2)};
}
std::vector<Array> first(std::vector<Array> arrays, std::size_t n) {
    arrays.resize(n);
    return arrays;
}

}  // namespace

TEST_CASE("average_pooling_2d") {
    for (const Pooling& p : poolings) {
        CAPTURE(text_of(catena::plugin::Shape(p.x)));
        CAPTURE(text_of(catena::plugin::Shape(p.ksize)));
        Attrs attrs = {set("ksize", catena::plugin::Ints(p.ksize)),
                       set("stride", catena::plugin::Ints(p.stride)),
                       set("pad", catena::plugin::Ints(p.pad))};
        const Array x = Array::random<double>(p.x, 1);
        CHECK(compare_plugins({pool, {x}, attrs, pooling, onednn_id}) == "");
        const Array y = world().forward(pool, {x}, attrs)[0];
        attrs.push_back(set("size", catena::plugin::Ints(p.x).subspan(2)));
        CHECK(compare_plugins({spread, {y}, attrs, pooling, onednn_id}) == "");
    }
}

TEST_CASE("local_response_normalization") {
    for (const Dims& shape :
         {Dims{5, 96, 13, 14}, Dims{1, 16, 20, 20}, Dims{19, 32, 9, 9}, Dims{3, 48, 77},
          Dims{2, 2048}, Dims{2, 16, 6, 5, 7}, Dims{1, 1}, Dims{3, 1, 5}, Dims{2, 21, 3, 5}}) {
        CAPTURE(text_of(catena::plugin::Shape(shape)));
        const std::vector<Array> x = {Array::random<double>(shape, 1, -3, 3)};
        for (const Attrs& attrs : {Attrs{}, Attrs{set("k", 1.0), set("alpha", 0.3)},
                                   Attrs{set("n", std::int64_t{4}), set("alpha", 0.1)},
                                   Attrs{set("n", std::int64_t{3}), set("beta", 0.5)},
                                   Attrs{set("n", std::int64_t{1}), set("alpha", 0.2)}})
            CHECK(compare_plugins({lrn, x, attrs, normalization, onednn_id}) == "");
    }
}

TEST_CASE("batch_normalization") {
    for (const Dims& shape :
         {Dims{5, 17, 4, 3}, Dims{3, 40, 29}, Dims{4, 65, 9, 9}, Dims{33, 48}, Dims{7, 1, 3, 5},
          Dims{1, 3, 6, 7}, Dims{9, 1}, Dims{1, 1, 2}, Dims{2, 16, 2, 3, 5}, Dims{64, 16, 31}}) {
        CAPTURE(text_of(catena::plugin::Shape(shape)));
        const std::vector<Array> x = normalized(shape);
        for (const Attrs& attrs : {Attrs{}, Attrs{set("eps", 0.1)}}) {
            CHECK(compare_plugins({batch, first(x, 3), attrs, normalization, onednn_id}) == "");
            const auto y = world().forward(fixed, narrow(x), attrs, pinned());
            CHECK(world().ran() == onednn_id);
            const auto expected = world().forward(fixed, x, attrs);
            CHECK(compare(y[0], expected[0], {1e-4, 1e-4}) == "");
            Options add = pinned();
            add.add = true;
            add.threads = 3;
            CHECK(compare(world().forward(fixed, narrow(x), attrs, add)[0], plus_one(expected[0]),
                          {1e-4, 1e-4}) == "");
        }
    }
}

TEST_CASE(
    "batch_normalization of one value a channel is beta, of NaN in a channel NaN there alone") {
    const std::vector<Array> one = narrow(first(normalized({1, 19}), 3));
    const auto y = world().forward(batch, one, {}, pinned());
    CHECK(compare(y[0], one[2].reshaped({1, 19}), {0, 0}) == "");
    CHECK(compare(y[1], one[0].reshaped({19}), {0, 0}) == "");
    for (std::int64_t i = 0; i < 19; ++i) CHECK(y[2].at(i) == 0);
    std::vector<Array> x = narrow(first(normalized({2, 18, 3}), 3));
    x[0].set(17 * 3, std::nan(""));
    const Array got = world().forward(batch, x, {}, pinned())[0];
    for (std::int64_t i = 0; i < got.size(); ++i)
        CHECK(std::isnan(got.at(i)) == (i / 3 % 18 == 17));
}

TEST_CASE("who computes what, without a pin and with one") {
    const Ints two = {2};
    const Ints five = {5};
    const Ints eight = {8, 8};
    const auto done_by = [](const char* name, const std::vector<Array>& x, const Attrs& attrs = {},
                            const Options& options = {}) {
        const auto y = world().forward(name, x, attrs, options);
        const std::string forward = world().ran();
        if (name == fixed) return forward;
        world().backward(name, x, y, y, attrs, options);
        return forward == world().ran() ? forward : forward + ", " + world().ran();
    };
    const auto image = [](const Dims& shape) {
        return std::vector<Array>{Array::random<float>(shape, 1)};
    };
    const Attrs ksize = {set("ksize", catena::plugin::Ints(two))};
    const std::string onednn = onednn_id;
    CHECK(done_by(pool, image({40, 64, 11, 12}), ksize) == onednn + ", " + pooling);
    CHECK(done_by(pool, image({40, 64, 2, 2}), ksize) == pooling);  // one window
    CHECK(done_by(pool, image({4, 64, 8, 8}), ksize) == pooling);
    CHECK(done_by(pool, image({40, 64, 8, 13}), ksize) == pooling);
    const Attrs grown = {ksize[0], set("size", catena::plugin::Ints(eight))};
    CHECK(done_by(spread, image({40, 64, 4, 4}), grown) == pooling + (", " + onednn));
    CHECK(done_by(pool, image({2, 8, 30, 30}), ksize) == pooling);
    CHECK(done_by(pool, image({2, 8, 30, 30}), ksize, pinned()) == onednn_id);
    CHECK_THROWS(done_by(pool, image({0, 8, 30, 30}), ksize, pinned()));
    CHECK_THROWS(done_by(pool, image({2, 8, 30, 30}),
                         {ksize[0], set("pad", catena::plugin::Ints(five))}, pinned()));
    CHECK(done_by("catena.max_pooling_2d", image({40, 64, 8, 8}), ksize) == pooling);
    CHECK(done_by(lrn, image({2, 16, 30, 30})) == normalization);
    CHECK(done_by(lrn, image({2, 16, 30, 30}), {}, pinned()) == onednn_id);
    CHECK_THROWS(done_by(lrn, image({0, 16, 30, 30}), {}, pinned()));
    const std::vector<Array> x = narrow(normalized({4, 20, 9}));
    CHECK(done_by(batch, first(x, 3)) == normalization);
    CHECK(done_by(batch, first(x, 3), {}, pinned()) == onednn_id);
    CHECK(done_by(fixed, x) == normalization);
    CHECK(done_by(fixed, x, {}, pinned()) == onednn_id);
    CHECK_THROWS(done_by(batch, narrow(first(normalized({0, 3, 2}), 3)), {}, pinned()));
    CHECK_THROWS(done_by(batch, first(normalized({4, 20, 9}), 3), {}, pinned()));  // float64
    const auto y = world().forward(batch, first(x, 3), {});
    CHECK_THROWS(world().backward(batch, first(x, 3), y, {Array(), y[1], y[2]}, {}, pinned()));
    world().backward(batch, first(x, 3), y, {Array(), y[1], y[2]});
    CHECK(world().ran() == normalization);
}
