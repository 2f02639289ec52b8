// Losses that are sums over all elements.
#include "both.hpp"

#include <cmath>

TEST_CASE_TEMPLATE("mean_squared_error: any size, huge and tiny differences", T, float, double,
                   Float16, BFloat16) {
    for (const Dims& shape : {Dims{}, Dims{1}, Dims{7}, Dims{3, 5, 2}, Dims{257}, Dims{100, 1003}})
        check_both<T>("catena.mean_squared_error", {draw<T>(shape, 1), draw<T>(shape, 2)}, {}, true,
                      shape.size() == 2);
    for (const std::int64_t n : {0, 4}) {
        const Array x = draw<T>({n, n}, 1);
        const double loss =
            wide(world().forward("catena.mean_squared_error", {x, x}, {}, on("cuda")))[0]
                .template values<double>()[0];
        if (n == 0) CHECK(std::isnan(loss));
        else CHECK(loss == 0);
    }
}

TEST_CASE("mean_squared_error: squares that a float does not hold, and NaN") {
    const auto loss = [](double a, double b, std::int64_t n) {
        const std::vector<double> x(static_cast<std::size_t>(n), a);
        const std::vector<double> y(static_cast<std::size_t>(n), b);
        const auto as_float = [&](const std::vector<double>& v) {
            return Array::from<double>(v, {n}).to(plugin::dtype_of<float>());
        };
        return world()
            .forward("catena.mean_squared_error", {as_float(x), as_float(y)}, {}, on("cuda"))[0]
            .values<float>()[0];
    };
    CHECK(loss(1e19, -0.5e19, 1000) == doctest::Approx(2.25e38));
    CHECK(loss(1e-18, 0, 100000) == doctest::Approx(1e-36));
    CHECK(loss(3e38, -3e38, 10) == inf);
    CHECK(std::isnan(loss(no_number, 0, 300)));
    CHECK(std::isnan(loss(inf, inf, 3)));
}

TEST_CASE_TEMPLATE("losses of labels: weights, smoothing, reductions", T, float, double, Float16,
                   BFloat16) {
    const auto labels = [](const Dims& shape) {
        std::int64_t n = 1;
        for (const std::int64_t d : shape) n *= d;
        std::vector<std::int64_t> t(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<std::int64_t>(i * 7 % 6) - 1;
        return Array::from<std::int64_t>(t, shape);
    };
    const Array weight = draw<T>({5}, 3, 0.5, 2);
    for (const char* reduce : {"mean", "sum", "no"}) {
        CAPTURE(reduce);
        for (const auto& [x, t] : {std::pair(Dims{130, 5}, Dims{130}),
                                   {{12, 5, 5}, {12, 5}},
                                   {{0, 5}, {0}},
                                   {{600, 5}, {600}}}) {
            const bool add = x.size() == 3;
            for (const Array& w : {Array(), weight}) {
                const std::vector<Array> in = {draw<T>(x, 1), labels(t), w};
                const Attrs plain = {plugin::set("reduce", reduce)};
                const Attrs smooth = {plugin::set("reduce", reduce),
                                      plugin::set("label_smoothing", 0.25)};
                check_both<T>("catena.nll_loss", in, plain, true, add);
                check_both<T>("catena.softmax_cross_entropy", in, smooth, true, add);
                check_both<T>("catena.softmax_cross_entropy", in, plain, true, add);
                check_both<T>("catena.softmax_cross_entropy_soft",
                              {draw<T>(x, 1), draw<T>(x, 2, 0, 1), w}, smooth, true, add);
                check_both<T>("catena.label_targets", in, {plugin::set("label_smoothing", 0.25)},
                              false, add);
            }
            check_both<T>("catena.softmax_cross_entropy", {draw<T>(x, 1), labels(t), weight},
                          {plugin::set("normalize", false)});
        }
        check_both<T>("catena.softmax_cross_entropy_soft",
                      {draw<T>({3, 1003}, 1), draw<T>({3, 1003}, 2, 0, 1)},
                      {plugin::set("reduce", reduce)});
    }
    check_both<T>("catena.softmax_cross_entropy",
                  {draw<T>({3, 1003}, 1), Array::from<std::int64_t>({0, 7, 1002}, {3}),
                   draw<T>({1003}, 2, 0.5, 2)},
                  {plugin::set("label_smoothing", 0.1)});
}

TEST_CASE("losses of labels: a label out of range makes its loss and gradient NaN") {
    const std::vector<Array> in = {draw<float>({2, 3}, 1), Array::from<std::int64_t>({1, 3}, {2}),
                                   draw<float>({3}, 2)};
    for (const char* name : {"catena.softmax_cross_entropy", "catena.nll_loss"})
        for (const char* reduce : {"mean", "sum", "no"}) {
            const Attrs attrs = {plugin::set("reduce", reduce)};
            const auto y = world().forward(name, in, attrs, on("cuda"));
            CHECK(std::isnan(y[0].values<float>().back()));
            std::vector<Array> gy(y.size());
            gy[0] = draw<float>(y[0].shape(), 3);
            const auto gx = world().backward(name, in, y, gy, attrs, on("cuda"))[0].values<float>();
            CHECK(std::isnan(gx[3]));
            if (std::string(reduce) != "mean") CHECK_FALSE(std::isnan(gx[0]));
        }
    const auto q = world().forward("catena.label_targets", in, {}, on("cuda"))[0].values<float>();
    CHECK(q[0] == 0);
    CHECK(std::isnan(q[3]));
}
