// Attention, with sizes and shapes that matter on a GPU: several tiles, groups of columns.
#include "both.hpp"

namespace {

struct Sample {
    std::int64_t b, h, hk, t, s, d, e;
    Attrs attrs = {};
    Dims mask = {};
    bool bool_mask = false;
    std::vector<std::int64_t> lengths = {};
    bool heads_last = false;
};
const Sample samples[] = {
    {2, 2, 2, 40, 70, 5, 3},
    {1, 4, 2, 70, 70, 40, 33, {set("causal", true)}},
    {1, 2, 1, 33, 65, 4, 300, {set("causal", true), set("offset", -1), set("window", 40)}},
    {1, 1, 1, 3, 5, 290, 7, {set("scale", 0.1)}},
    {2, 2, 1, 40, 20, 4, 4, {set("offset", -1), set("causal", true)}, {}, false, {20, 7}},
    {2, 2, 2, 40, 35, 4, 4, {}, {2, 1, 40, 35}},
    {2, 2, 2, 40, 35, 4, 4, {set("causal", true)}, {2, 1, 35}},
    {2, 2, 2, 40, 35, 4, 4, {}, {40, 1}},
    {2, 2, 2, 40, 35, 4, 4, {}, {2, 2, 1, 35}, true},
    {2, 6, 2, 3, 40, 4, 4, {set("layout", "BTHD")}, {}, false, {}, true},
    {0, 2, 2, 3, 4, 5, 6},
    {1, 2, 2, 0, 4, 5, 6},
    {1, 2, 2, 3, 0, 5, 6},
    {1, 2, 2, 3, 4, 5, 0},
};

}  // namespace

TEST_CASE_TEMPLATE("attention", T, float, double, Float16, BFloat16) {
    for (const Sample& s : samples) {
        CAPTURE(&s - samples);
        const auto of = [&](std::int64_t heads, std::int64_t rows, std::int64_t size,
                            unsigned seed) {
            return draw<T>(
                s.heads_last ? Dims{s.b, rows, heads, size} : Dims{s.b, heads, rows, size}, seed,
                -1, 1);
        };
        std::vector<Array> x = {of(s.h, s.t, s.d, 1),
                                of(s.hk, s.s, s.d, 2),
                                of(s.hk, s.s, s.e, 3),
                                Array(),
                                Array(),
                                Array()};
        if (!s.mask.empty()) {
            Array mask = draw<double>(s.mask, 4);
            for (std::int64_t i = 0; s.bool_mask && i < mask.size(); ++i)
                mask.set(i, mask.at(i) > 0);
            if (s.bool_mask) x[4] = mask.to(plugin::dtype_of<bool>());
            else x[3] = mask.to(plugin::dtype_of<T>());
        }
        if (!s.lengths.empty()) x[5] = Array::from<std::int64_t>(s.lengths, {s.b});
        check_both<T>("catena.scaled_dot_product_attention", x, s.attrs, true, s.t % 2 == 1);
    }
}

TEST_CASE("attention: draws the same numbers as the CPU") {
    const std::string name = "catena.scaled_dot_product_attention";
    const std::vector<Array> x = {draw<double>({2, 2, 35, 3}, 1), draw<double>({2, 1, 38, 3}, 2),
                                  draw<double>({2, 1, 38, 2}, 3)};
    const Attrs attrs = {set("dropout", 0.3), set("causal", true), set("offset", 5)};
    const auto run = [&](const char* device) {
        world().drawn = 3;
        return world().forward(name, x, attrs, on(device));
    };
    const auto y = run("cuda"), expected = run("cpu");
    CHECK(compare(y, expected, tolerance<double>()) == "");
    const std::vector<Array> gy = {draw<double>(y[0].shape(), 4), Array(), Array(), Array()};
    CHECK(compare(world().backward(name, x, y, gy, attrs, on("cuda")),
                  world().backward(name, x, y, gy, attrs, on("cpu")), {1e-12, 1e-12}) == "");
    const std::vector<Array> of_factors = {x[0], x[1], y[2],
                                           Array::from<std::int64_t>({20, 38}, {2})};
    CHECK(compare(world().forward("catena.attention_factors", of_factors, attrs, on("cuda")),
                  world().forward("catena.attention_factors", of_factors, attrs, on("cpu")),
                  {0, 0}) == "");
}
