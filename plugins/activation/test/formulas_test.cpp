// Tests the elementwise activations: values, and what happens at huge x, infinity and NaN.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double quiet = std::nan("");

World& world() {
    static World world({ACTIVATION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}
Array list(const std::vector<double>& values) {
    return Array::from<double>(values, {static_cast<std::int64_t>(values.size())});
}

using Reference = long double (*)(long double);
struct Activation {
    std::string name;
    Attrs attrs;
    Reference y;
};
const std::vector<Activation>& activations() {
    static const std::vector<Activation> list = {
        {"gelu", {}, [](long double x) { return x * std::erfc(-x / std::sqrt(2.0L)) / 2; }},
        {"gelu",
         {set("approximate", "tanh")},
         [](long double x) {
             const long double u = std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x);
             return x / (1 + std::exp(-2 * u));
         }},
        {"silu", {}, [](long double x) { return x / (1 + std::exp(-x)); }},
        {"softplus", {}, [](long double x) { return x > 50 ? x : std::log1p(std::exp(x)); }},
        {"softplus",
         {set("beta", -2.0)},
         [](long double x) { return -std::log1p(std::exp(-2 * x)) / 2; }},
        {"mish",
         {},
         [](long double x) { return x * std::tanh(x > 50 ? x : std::log1p(std::exp(x))); }},
        {"elu", {}, [](long double x) { return x > 0 ? x : std::expm1(x); }},
        {"elu",
         {set("alpha", 0.5), set("scale", 2.0), set("input_scale", 4.0)},
         [](long double x) { return x > 0 ? 2 * x : std::expm1(4 * x); }},
        {"hard_sigmoid",
         {},
         [](long double x) { return std::fmin(std::fmax(0.2L * x + 0.5L, 0), 1); }},
        {"hard_swish", {}, [](long double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; }},
        {"clipped_relu", {}, [](long double x) { return std::fmin(std::fmax(x, 0), 20); }},
        {"clipped_relu",
         {set("z", 6.0)},
         [](long double x) { return std::fmin(std::fmax(x, 0), 6); }},
    };
    return list;
}

}  // namespace

TEST_CASE("activations: values, and gradients of any order") {
    for (const Activation& f : activations()) {
        CAPTURE(f.name);
        for (const Dims& shape : {Dims{}, Dims{0, 4}, Dims{2, 1, 70}}) {
            Array x = Array::random<double>(shape, 1, -4, 4);
            Array y(shape, dtype_of<double>());
            for (std::int64_t i = 0; i < x.size(); ++i) {
                // Finite differences must not cross a kink: moves x away from multiples of 0.5.
                const double half = std::round(2 * x.at(i)) / 2;
                if (std::abs(x.at(i) - half) < 0.05) x.set(i, half + 0.1);
                y.set(i, static_cast<double>(f.y(static_cast<long double>(x.at(i)))));
            }
            CHECK(check(world(), {.function = "catena." + f.name,
                                  .inputs = {x},
                                  .attrs = f.attrs,
                                  .expected = {y}}) == "");
        }
    }
}

TEST_CASE("activations: float32 keeps its digits from -100 to 100") {
    for (const Activation& f : activations()) {
        CAPTURE(f.name);
        Array x({40001}, dtype_of<float>());
        for (std::int64_t i = 0; i < x.size(); ++i)
            x.set(i, (static_cast<double>(i) - 20000) * 0.005 + 1e-4);
        const Array y = world().forward("catena." + f.name, {x}, f.attrs)[0];
        double worst = 0;
        for (std::int64_t i = 0; i < x.size(); ++i) {
            const auto exact = static_cast<double>(f.y(static_cast<long double>(x.at(i))));
            if (std::abs(exact) < 1e-36) {
                REQUIRE(std::abs(y.at(i)) < 1e-35);
                continue;
            }
            // gelu's tail is e^(-x^2 / 2): its relative error grows with the exponent, of the
            // approximation with x^3. hard_sigmoid's sum cancels near -2.5.
            const double a = std::fmax(-x.at(i), 0);
            double size = std::abs(exact);
            if (f.name == "gelu") size *= 1 + a * a + a * a * a;
            if (f.name.starts_with("hard")) size += 1;
            worst = std::fmax(worst, std::abs(y.at(i) - exact) / size);
        }
        CHECK(worst < 1e-6);
    }
}

TEST_CASE("activations: infinite, huge and NaN") {
    const std::vector<double> x = {-inf, -1e30, -1000, 0, 1000, 1e30, inf, quiet};
    struct Ends {
        std::string name;
        Attrs attrs;
        std::vector<double> y, gx;
    };
    const std::vector<double> relu = {0, 0, 0, 0, 1000, 1e30, inf, quiet};
    const std::vector<double> half = {0, 0, 0, 0.5, 1, 1, 1, quiet};
    const double log_2 = std::log(2.0);
    for (const Ends& f : {
             Ends{"gelu", {}, relu, half},
             {"gelu", {set("approximate", "tanh")}, relu, half},
             {"silu", {}, relu, half},
             {"mish", {}, relu, {0, 0, 0, 0.6, 1, 1, 1, quiet}},
             {"softplus", {}, {0, 0, 0, log_2, 1000, 1e30, inf, quiet}, half},
             {"elu", {}, {-1, -1, -1, 0, 1000, 1e30, inf, quiet}, {0, 0, 0, 1, 1, 1, 1, quiet}},
             {"hard_sigmoid", {}, {0, 0, 0, 0.5, 1, 1, 1, quiet}, {0, 0, 0, 0.2, 0, 0, 0, quiet}},
             {"hard_swish", {}, relu, half},
             {"clipped_relu", {}, {0, 0, 0, 0, 20, 20, 20, quiet}, {0, 0, 0, 0, 0, 0, 0, quiet}},
         }) {
        CAPTURE(f.name);
        for (const catena_dtype dtype : {dtype_of<double>(), dtype_of<float>()}) {
            const Array in = list(x).to(dtype);
            const Array gy = Array::constant(in.shape(), dtype, 1);
            const std::string name = "catena." + f.name;
            const auto y = world().forward(name, {in}, f.attrs);
            CHECK(compare(y[0], list(f.y).to(dtype), {1e-6, 1e-30}) == "");
            const Array gx = list(f.gx).to(dtype);
            CHECK(compare(world().backward(name, {in}, y, {gy}, f.attrs)[0], gx, {1e-6, 1e-30}) ==
                  "");
            CHECK(compare(world().gradient(name, {in}, y, {gy}, f.attrs)[0], gx, {1e-6, 1e-30}) ==
                  "");
        }
    }
}

TEST_CASE("softplus(100) and mish(-1000)") {
    const Array x = Array::from<float>({100, -100, -80, 80}, {4});
    const Array y = world().forward("catena.softplus", {x})[0];
    CHECK(y.at(0) == 100);
    CHECK(y.at(1) == doctest::Approx(std::exp(-100.0)).epsilon(1e-2));  // subnormal
    CHECK(y.at(2) == doctest::Approx(std::exp(-80.0)).epsilon(1e-6));
    CHECK(y.at(3) == 80);
    CHECK(world().forward("catena.mish", {Array::from<float>({-1000}, {1})})[0].at(0) == 0);
}

TEST_CASE("gelu rejects other approximations") {
    CHECK_THROWS_AS(world().forward("catena.gelu", {list({1})}, {set("approximate", "sigmoid")}),
                    Failure);
}

TEST_CASE("swiglu") {
    for (const Dims& shape : {Dims{3, 5}, Dims{0, 5}, Dims{}, Dims{3, 1}})
        CHECK(check(world(), {"catena.swiglu",
                              {Array::random<double>(shape, 1), Array::random<double>({5}, 2)}}) ==
              "");
    const Array y =
        world().forward("catena.swiglu", {list({1, -2, -inf, quiet}), list({3, 0.5, 2, 1})})[0];
    CHECK(y.at(0) == doctest::Approx(3 / (1 + std::exp(-1.0))));
    CHECK(y.at(1) == doctest::Approx(-1 / (1 + std::exp(2.0))));
    CHECK(y.at(2) == 0);
    CHECK(std::isnan(y.at(3)));
}

TEST_CASE("swiglu and softplus: the composition gives what the kernels give") {
    const Array a = Array::random<double>({5, 7}, 1, -6, 6), b = Array::random<double>({7}, 2);
    struct Sample {
        const char* name;
        std::vector<Array> x;
        Attrs attrs;
    };
    Options options;
    options.composition = true;
    for (const Sample& s : {Sample{"catena.swiglu", {a, b}, {}},
                            Sample{"catena.softplus", {a}, {set("beta", -2.0)}}}) {
        REQUIRE(static_cast<bool>(world().function(s.name).compose));
        const Array y = world().forward(s.name, s.x, s.attrs)[0];
        const Array composed = world().forward(s.name, s.x, s.attrs, options)[0];
        // The gradient of the description, and that of the composition's parts.
        const Array gx = world().gradient(s.name, s.x, {y}, {y}, s.attrs)[0];
        const Array of_parts = world().gradient(s.name, s.x, {y}, {y}, s.attrs, options)[0];
        for (std::int64_t i = 0; i < y.size(); ++i) {
            CHECK(composed.at(i) == doctest::Approx(y.at(i)).epsilon(1e-13));
            CHECK(of_parts.at(i) == doctest::Approx(gx.at(i)).epsilon(1e-13));
        }
        CHECK(check(world(), {.function = s.name, .inputs = s.x, .attrs = s.attrs}) == "");
    }
}
