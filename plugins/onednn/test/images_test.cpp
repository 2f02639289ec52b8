// Average pooling and local response normalisation on oneDNN against the portable ones.
#include "compare.hpp"

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
    {{5, 32, 24, 24}, {2}, {}, {0}},           {{3, 17, 29, 31}, {3}, {2}, {1}},
    {{20, 7, 30, 25}, {3, 2}, {2, 1}, {1, 0}}, {{1, 64, 14, 14}, {3}, {1}, {1}},
    {{7, 20, 40, 41}, {5}, {3}, {2}},          {{32, 65, 8, 8}, {8}, {1}, {0}},
};

}  // namespace

TEST_CASE("average_pooling_2d") {
    for (const Pooling& p : poolings) {
        CAPTURE(text_of(catena::plugin::Shape(p.x)));
        CAPTURE(text_of(catena::plugin::Shape(p.ksize)));
        Attrs attrs = {set("ksize", catena::plugin::Ints(p.ksize)),
                       set("stride", catena::plugin::Ints(p.stride)),
                       set("pad", catena::plugin::Ints(p.pad))};
        const Array x = Array::random<double>(p.x, 1);
        CHECK(compare_plugins({"catena.average_pooling_2d", {x}, attrs, "org.catena.pooling"}) ==
              "");
        const Array y = world().forward("catena.average_pooling_2d", {x}, attrs)[0];
        attrs.push_back(set("size", catena::plugin::Ints(p.x).subspan(2)));
        CHECK(compare_plugins(
                  {"catena.average_pooling_2d_grad", {y}, attrs, "org.catena.pooling"}) == "");
    }
}

TEST_CASE("local_response_normalization") {
    for (const Dims& shape : {Dims{5, 96, 13, 14}, Dims{1, 16, 20, 20}, Dims{19, 32, 9, 9},
                              Dims{3, 48, 77}, Dims{2, 2048}, Dims{2, 16, 6, 5, 7}}) {
        CAPTURE(text_of(catena::plugin::Shape(shape)));
        const Array x = Array::random<double>(shape, 1, -3, 3);
        const char* const portable = "org.catena.normalization";
        const char* const name = "catena.local_response_normalization";
        CHECK(compare_plugins({name, {x}, {}, portable}) == "");
        CHECK(compare_plugins({name, {x}, {set("k", 1.0), set("alpha", 0.3)}, portable}) == "");
        CHECK(compare_plugins(
                  {name, {x}, {set("n", std::int64_t{4}), set("alpha", 0.1)}, portable}) == "");
    }
}

TEST_CASE("images that others take") {
    const Ints two = {2};
    const Ints five = {5};
    const auto done_by = [](const char* name, const Dims& x, const Attrs& attrs) {
        world().forward(name, {Array::random<float>(x, 1)}, attrs);
        return world().ran() == onednn_id;
    };
    const char* const pool = "catena.average_pooling_2d";
    const auto ksize = set("ksize", catena::plugin::Ints(two));
    CHECK(done_by(pool, {2, 8, 30, 30}, {ksize}));
    CHECK(!done_by(pool, {2, 8, 6, 6}, {ksize}));
    CHECK(!done_by(pool, {0, 8, 30, 30}, {ksize}));
    CHECK(!done_by(pool, {2, 8, 30, 30}, {ksize, set("pad", catena::plugin::Ints(five))}));
    CHECK(!done_by("catena.max_pooling_2d", {2, 8, 30, 30}, {ksize}));
    const char* const lrn = "catena.local_response_normalization";
    CHECK(done_by(lrn, {2, 16, 30, 30}, {}));
    CHECK(!done_by(lrn, {2, 20, 30, 30}, {}));
    CHECK(!done_by(lrn, {0, 16, 30, 30}, {}));
    CHECK(!done_by(lrn, {2, 16, 30, 30}, {set("n", std::int64_t{3})}));
    CHECK(!done_by(lrn, {2, 16, 30, 30}, {set("beta", 0.5)}));
}
