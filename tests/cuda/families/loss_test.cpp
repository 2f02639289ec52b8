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

TEST_CASE_TEMPLATE("label_weights: what a label gives to the mean", T, float, double, Float16) {
    std::vector<std::int64_t> t(60);
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<std::int64_t>(i * 7 % 6) - 1;
    for (const bool add : {false, true})
        check_both<T>("catena.label_weights",
                      {draw<T>({12, 5, 5}, 1), Array::from<std::int64_t>(t, {12, 5})}, {}, false,
                      add);
    const auto wrong = world().forward(
        "catena.label_weights", {draw<T>({2, 3}, 1), Array::from<std::int64_t>({-1, 3}, {2})}, {},
        on("cuda"));
    CHECK(wide(wrong)[0].template values<double>() == std::vector<double>(6, 0));
    const auto weight = wide(wrong)[1].template values<double>();
    CHECK(weight[0] == 0);
    CHECK(std::isnan(weight[1]));
}
