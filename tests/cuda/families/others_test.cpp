// Kernels of the other families, with sizes and shapes that matter on a GPU.
#include "both.hpp"

#include <cmath>

TEST_CASE_TEMPLATE("softmax: lines of every length, along any axis", T, float, double, Float16,
                   BFloat16) {
    const std::pair<Dims, std::int64_t> all[] = {
        {{3, 1}, 1},  {{2, 7}, 1},    {{5, 1000}, 1},  {{300, 10}, 1}, {{4, 33, 5}, 1},
        {{70, 3}, 0}, {{2, 4100}, 1}, {{3, 2, 65}, 1}, {{1030}, 0},    {{2, 5, 1, 3}, -3}};
    for (const auto& [shape, axis] : all)
        check_both<T>("catena.softmax", {draw<T>(shape, 1, -9, 9)}, {plugin::set("axis", axis)},
                      true, axis == 0);
}

TEST_CASE("softmax: 300000 classes; scores that are masked, huge, infinite or NaN") {
    check_both<float>("catena.softmax", {draw<float>({2, 300000}, 1, -9, 9)});
    const auto softmax = [](std::vector<double> x) {
        const auto n = static_cast<std::int64_t>(x.size());
        const auto y = world().forward(
            "catena.softmax", {Array::from<double>(x, {1, n}).to(plugin::dtype_of<float>())}, {},
            on("cuda"));
        return y[0].to(plugin::dtype_of<double>()).values<double>();
    };
    CHECK(softmax({-inf, 1, -inf, 1}) == std::vector<double>{0, 0.5, 0, 0.5});
    CHECK(softmax({3e38, 3e38, -3e38}) == std::vector<double>{0.5, 0.5, 0});
    std::vector<double> masked(700, -inf), half(700, 0);  // lines that several warps read
    masked[650] = 2;
    for (const std::size_t i : {300, 600}) half[i] = 1e30;
    for (std::size_t i = 0; const double v : softmax(masked)) CHECK(v == (i++ == 650 ? 1 : 0));
    for (std::size_t i = 0; const double v : softmax(half)) {
        CHECK(v == (i == 300 || i == 600 ? 0.5 : 0));
        ++i;
    }
    for (const double wrong : {inf, no_number}) {
        half[500] = wrong;
        for (const double v : softmax(half)) CHECK(std::isnan(v));
    }
    for (const std::vector<double>& bad :
         {std::vector<double>{1, no_number, 2}, std::vector<double>{inf, 0, 1},
          std::vector<double>{-inf, -inf}, std::vector<double>(700, -inf)})
        for (const double v : softmax(bad)) CHECK(std::isnan(v));
}

TEST_CASE_TEMPLATE("comparisons: smaller, equal, larger, infinite, NaN", T, float, double, Float16,
                   BFloat16, std::int32_t, std::int64_t, bool) {
    std::vector<double> values = {0, 1, 0};
    if (!std::is_same_v<T, bool>) values.insert(values.end(), {-1, 7});
    if (plugin::dtype_of<T>().code != CATENA_CODE_INT && !std::is_same_v<T, bool>)
        values.insert(values.end(), {inf, -inf, no_number, -0.0});
    const auto n = static_cast<std::int64_t>(values.size());
    const Array x = Array::from<double>(values, {n}).to(plugin::dtype_of<T>());
    const Array column = Array::from<double>(values, {n, 1}).to(plugin::dtype_of<T>());
    for (const char* name :
         {"catena.is_equal", "catena.is_not_equal", "catena.is_greater", "catena.is_greater_equal",
          "catena.equal", "catena.greater", "catena.greater_equal"}) {
        const bool in_bool = std::string_view(name).starts_with("catena.is_");
        if (std::is_same_v<T, bool> && !in_bool) continue;
        check_both<T>(name, {x, column}, {}, false);
        check_both<T>(name, {x, x}, {}, false);
    }
}

TEST_CASE_TEMPLATE("lstm: gates side by side and apart, rows without input", T, float, double,
                   Float16) {
    for (const std::int64_t inner : {1, 3})
        for (const std::int64_t rows : {5, 7})
            for (const bool add : {false, true})
                check_both<T>("catena.lstm",
                              {draw<T>({7, 33, inner}, 1), draw<T>({rows, 132, inner}, 2)}, {},
                              true, add);
    check_both<T>("catena.lstm", {draw<T>({3, 6}, 1), draw<T>({3, 24}, 2)});
}

TEST_CASE_TEMPLATE("lstm_sequence: texts of one length and of several, with a state and without", T,
                   float, double, Float16, BFloat16) {
    const Array w = draw<T>({132, 33}, 2, -0.3, 0.3);
    const Array h0 = draw<T>({5, 33}, 3), c0 = draw<T>({5, 33}, 4);
    const std::int64_t rows[] = {5, 5, 3, 1};
    const Attrs several = {plugin::set("rows", plugin::Ints(rows))};
    for (const bool add : {false, true}) {
        check_both<T>("catena.lstm_sequence", {draw<T>({3, 5, 132}, 1), w, h0, c0}, {}, true, add);
        check_both<T>("catena.lstm_sequence", {draw<T>({14, 132}, 1), w, h0, c0}, several, true,
                      add);
        check_both<T>("catena.lstm_sequence", {draw<T>({14, 132}, 1), w, Array(), Array()}, several,
                      true, add);
    }
    check_both<T>("catena.lstm_sequence", {draw<T>({2, 5, 132}, 1), w, h0, Array()});
    check_both<T>("catena.lstm_sequence", {draw<T>({2, 5, 132}, 1), w, Array(), c0});
    check_both<T>("catena.lstm_sequence", {draw<T>({0, 5, 132}, 1), w, h0, c0});  // gradients: 0
    if (std::is_same_v<T, float>) {  // more cells than threads
        check_both<T>("catena.lstm_sequence",
                      {draw<T>({2, 130, 4 * 257}, 1), draw<T>({4 * 257, 257}, 2, -0.1, 0.1)});
    }
    check_both<T>("catena.lstm_sequence",
                  {draw<T>({100, 3, 32}, 1), draw<T>({32, 8}, 2, -0.3, 0.3)});
    const std::int64_t ends[] = {5, 0};
    check_both<T>("catena.lstm_sequence", {draw<T>({5, 132}, 1), w, h0, c0},
                  {plugin::set("rows", plugin::Ints(ends))});
}

TEST_CASE_TEMPLATE("prelu: a slope for all, for channels, for elements", T, float, double,
                   BFloat16) {
    for (const Dims& w : {Dims{}, Dims{5, 1}, Dims{5, 9}})
        check_both<T>("catena.broadcast_prelu", {draw<T>({40, 5, 9}, 1), draw<T>(w, 2)}, {}, true,
                      w.size() == 2);
}

TEST_CASE_TEMPLATE("gradients at kinks, and where a NaN decides", T, float, double, Float16,
                   BFloat16) {
    const auto row = [](const std::vector<double>& x) {
        const auto n = static_cast<std::int64_t>(x.size());
        return Array::from<double>(x, {n}).to(plugin::dtype_of<T>());
    };
    const Array x = row({no_number, 2, -2, 0, -0.0, inf, -inf});
    for (const char* name : {"catena.abs", "catena.relu"}) check_both<T>(name, {x});
    for (const double slope : {0.2, 0.0, -0.5})
        check_both<T>("catena.leaky_relu", {x}, {plugin::set("slope", slope)});
    for (const double slope : {0.2, 0.0}) {
        const Array w = Array::from<double>({slope}, {}).to(plugin::dtype_of<T>());
        check_both<T>("catena.broadcast_prelu", {x, w});
    }
    const std::vector<Array> two = {row({no_number, 1, no_number, 1, 2, 3, -inf, inf}),
                                    row({1, no_number, no_number, 2, 1, 3, inf, -inf})};
    for (const char* name : {"catena.maximum", "catena.minimum"}) check_both<T>(name, two);
}

TEST_CASE_TEMPLATE("gradients of what is broadcast are summed", T, float, double, Float16) {
    check_both<T>("catena.add", {draw<T>({50, 33}, 1), draw<T>({33}, 2)});
    check_both<T>("catena.mul", {draw<T>({3, 5, 8}, 1), draw<T>({5, 1}, 2)});
    check_both<T>("catena.div", {draw<T>({4, 1, 6}, 1), draw<T>({5, 1}, 2, 0.5, 2)});
    check_both<T>("catena.pow", {draw<T>({3, 4}, 1, 0.5, 2), draw<T>({}, 2, 0.5, 2)});
    check_both<T>("catena.maximum", {draw<T>({2, 3, 2, 3, 2}, 1), draw<T>({3, 1, 3, 1}, 2)}, {},
                  true, true);
    check_both<T>("catena.where", {draw<T>({6, 1}, 1), draw<T>({6, 7}, 2), draw<T>({7}, 3)});
}

TEST_CASE_TEMPLATE("gradients that need an operand that is broadcast", T, float, double, Float16) {
    const Array x = draw<T>({5, 9}, 1, 0.5, 2), row = draw<T>({9}, 2, 0.5, 2);
    for (const char* name :
         {"catena.pow", "catena.fmod", "catena.swiglu", "catena.bce_with_logits", "catena.huber"}) {
        check_both<T>(name, {x, row});
        check_both<T>(name, {row, x}, {}, true, true);
    }
}

TEST_CASE("integers: sums, comparisons, arithmetic") {
    const Array a = Array::random<std::int64_t>({17, 9}, 1, -50, 50);
    const Array b = Array::random<std::int64_t>({9}, 2, -50, 50);
    for (const char* name : {"catena.add", "catena.mul", "catena.greater", "catena.maximum"})
        check_both<std::int64_t>(name, {a, b}, {}, false);
    const std::int64_t axis[] = {0};
    check_both<std::int64_t>("catena.sum", {a}, {plugin::set("axis", plugin::Ints(axis))}, false);
    for (const char* name : {"catena.fmod", "catena.floor_divide"})
        check_both<std::int64_t>(name, {a, b}, {}, false);
    // Sums and products of other integers and bool are int64, on the device too.
    for (const catena_dtype dtype : {plugin::dtype_of<std::int32_t>(),
                                     plugin::dtype_of<std::uint8_t>(), plugin::dtype_of<bool>()}) {
        const Array x = Array::random<double>({300, 7}, 3, 0, 200).to(dtype);
        for (const Dims& axes : {Dims{}, Dims{0}, Dims{1}})
            for (const char* name : {"catena.sum", "catena.prod"}) {
                const Attrs attrs = {plugin::set("axis", plugin::Ints(axes))};
                CHECK(world().forward(name, {x}, attrs, on("cuda"))[0] ==
                      world().forward(name, {x}, attrs, on("cpu"))[0]);
            }
        for (const Dims& shape : {Dims{}, Dims{7}, Dims{300, 1}, Dims{300, 7}}) {
            const Attrs attrs = {plugin::set("shape", plugin::Ints(shape))};
            CHECK(world().forward("catena.sum_to", {x}, attrs, on("cuda"))[0] ==
                  world().forward("catena.sum_to", {x}, attrs, on("cpu"))[0]);
        }
    }
}

TEST_CASE_TEMPLATE("elementary functions at the ends of their domains", T, float, double) {
    const Array x = Array::from<double>(
                        {-inf, -80, -20, -1, -1e-10, -0.0, 0, 0.3, 1, 20, 80, inf, no_number}, {13})
                        .to(plugin::dtype_of<T>());
    for (const char* name :
         {"catena.expm1", "catena.log1p", "catena.log2", "catena.log10", "catena.rsqrt",
          "catena.tan", "catena.sinh", "catena.cosh", "catena.arctanh", "catena.fix"})
        check_both<T>(name, {x}, {}, std::string_view(name) != "catena.fix");
    const Array d = draw<T>({13, 13}, 1, 0.4, 3);
    check_both<T>("catena.fmod", {draw<T>({13}, 2, -20, 20), d}, {}, false);
    check_both<T>("catena.floor_divide", {draw<T>({13}, 2, -20, 20), d}, {}, false);
}

TEST_CASE_TEMPLATE("dropout: the same elements as on the CPU for the same seed", T, float, double) {
    for (const std::int64_t n : {1, 64, 255, 256, 257, 1000, 5000})
        for (const bool train : {true, false}) {
            const Array x = draw<T>({n}, 1, 0.5, 2);
            std::vector<Array> y[2];
            for (const int device : {0, 1}) {
                world().drawn = 0;
                Options options = on(device == 0 ? "cpu" : "cuda");
                options.train = train;
                y[device] =
                    world().forward("catena.dropout", {x}, {plugin::set("ratio", 0.3)}, options);
            }
            CHECK(compare(y[1], y[0], {0, 0}) == "");
        }
    // Other random numbers select other elements.
    world().drawn = 4096;
    const Array x = draw<T>({1000}, 1, 0.5, 2);
    const Array other = world().forward("catena.dropout", {x}, {}, on("cuda"))[0];
    world().drawn = 0;
    CHECK(compare(world().forward("catena.dropout", {x}, {}, on("cuda")), {other, {}}, {0, 0}) !=
          "");
}

TEST_CASE_TEMPLATE("updates: parameters in any dtype, the state of halves in float32", T, float,
                   double, Float16, BFloat16) {
    using S = std::conditional_t<sizeof(T) == 2, float, T>;
    for (const std::int64_t n : {1, 7, 8, 1025}) {
        const Dims shape = {n};
        const std::vector<Array> x = {draw<T>(shape, 1), draw<T>(shape, 2), draw<S>(shape, 3),
                                      draw<S>(shape, 4, 0.1, 1)};
        const Attrs attrs = {plugin::set("t", std::int64_t{3}), plugin::set("alpha", 0.1)};
        const auto y = world().forward("catena.adam_update", x, attrs, on("cuda"));
        CHECK(world().ran() == "org.catena.optimizer.cuda");
        CHECK(compare(wide(y),
                      wide(world().forward("catena.adam_update", wide(x), attrs, on("cpu"))),
                      tolerance<T>()) == "");
    }
    const Array x = draw<T>({100, 1003}, 1);
    CHECK(compare(world().forward("catena.sum_of_squares", {x}, {}, on("cuda")),
                  world().forward("catena.sum_of_squares", {wide(x)}, {}, on("cpu")),
                  {1e-12, 0}) == "");
}

TEST_CASE_TEMPLATE("linear, the loss and the accuracy of a classifier", T, float, double, Float16) {
    check_both<T>("catena.linear", {draw<T>({20, 7}, 1), draw<T>({9, 7}, 2), draw<T>({9}, 3)});
    check_both<T>("catena.linear", {draw<T>({20, 7}, 1), draw<T>({9, 7}, 2), Array()}, {}, true,
                  true);
    for (const Dims& w : {Dims{0, 7}, Dims{9, 0}})
        check_both<T>("catena.linear", {draw<T>({5, w[1]}, 1), draw<T>(w, 2), draw<T>({w[0]}, 3)});
    for (const bool add : {false, true})
        check_both<T>("catena.linear", {draw<T>({5, 7}, 1), draw<T>({13, 7}, 2), draw<T>({13}, 3)},
                      {}, true, add);
    check_both<T>("catena.linear", {draw<T>({0, 7}, 1), draw<T>({9, 7}, 2), draw<T>({9}, 3)});
    check_both<T>("catena.matmul", {draw<T>({5, 3}, 1), draw<T>({5, 8}, 2)},
                  {plugin::set("transa", true)});
    check_both<T>("catena.linear", {draw<T>({2, 5, 7}, 1), draw<T>({9, 7}, 2), draw<T>({9}, 3)},
                  {plugin::set("n_batch_axes", 2)});
    for (const auto& [a, b] : {std::pair<Dims, Dims>{{3, 5, 4}, {3, 4, 2}},
                               {{3, 1, 2, 4}, {2, 4, 3}},
                               {{2, 3, 4}, {4, 2}},
                               {{4}, {3, 4, 2}},
                               {{3, 0, 4}, {4}}})
        check_both<T>("catena.matmul", {draw<T>(a, 1), draw<T>(b, 2)});
    const auto labels = [](Dims shape, std::vector<std::int64_t> t) {
        return Array::from<std::int64_t>(t, std::move(shape));
    };
    std::vector<std::int64_t> t(130);
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<std::int64_t>(i * 7 % 11) - 1;
    for (const char* name : {"catena.softmax_cross_entropy", "catena.accuracy"}) {
        const bool loss = std::string(name) != "catena.accuracy";
        check_both<T>(name, {draw<T>({130, 10}, 1), labels({130}, t)}, {}, loss);
        check_both<T>(name, {draw<T>({13, 10, 10}, 1), labels({13, 10}, t)}, {}, loss);
        check_both<T>(name, {draw<T>({2, 1003}, 1), labels({2}, {1002, 0})}, {}, loss);
        check_both<T>(name, {draw<T>({3, 4}, 1), labels({3}, {-1, -1, -1})}, {}, loss);
        check_both<T>(name, {draw<T>({0, 4}, 1), labels({0}, {})}, {}, loss);
        // On the CPU this is an error; on a device, which cannot report it, the result is NaN.
        const auto wrong =
            world().forward(name, {draw<T>({2, 4}, 1), labels({2}, {1, 4})}, {}, on("cuda"));
        CHECK(std::isnan(wide(wrong[0]).template values<double>()[0]));
    }
}

TEST_CASE("accuracy: the first of equal scores, and NaN, which is the largest") {
    const auto share = [](const std::vector<float>& scores, std::int64_t label) {
        return world()
            .forward("catena.accuracy",
                     {Array::from<float>(scores, {1, static_cast<std::int64_t>(scores.size())}),
                      Array::from<std::int64_t>({label}, {1})},
                     {}, on("cuda"))[0]
            .values<float>()[0];
    };
    const auto x = static_cast<float>(no_number);
    CHECK(share({1, 3, 3, 2}, 1) == 1);
    CHECK(share({1, 3, 3, 2}, 2) == 0);
    CHECK(share({1, x, 3, x}, 1) == 1);
    CHECK(share({1, x, 3, x}, 3) == 0);
    CHECK(share({-static_cast<float>(inf), -static_cast<float>(inf)}, 0) == 1);
}

TEST_CASE("16 axes that differ between operands") {
    const catena_kernel* add = nullptr;
    for (const catena_kernel* k : world().kernels("catena.add", CATENA_PHASE_FORWARD))
        if (std::string(k->device) == "cuda") add = k;
    REQUIRE(add != nullptr);
    CHECK((add->flags & CATENA_KERNEL_STRIDED) == 0);  // the host makes operands dense
    Dims comb(16, 1);
    for (std::size_t d = 0; d < 16; d += 2) comb[d] = 2;
    check_both<float>("catena.add", {draw<float>(Dims(16, 2), 1), draw<float>(comb, 2)});
}
