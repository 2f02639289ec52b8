// Tests that a gradient that reads an input or output that its function does not retain raises an
// error with its name. A missing optional input is no such error.
#include <catena/catena.hpp>

#include <doctest/doctest.h>

using namespace catena;

namespace {

struct Forgetful {
    const char* function;
    const char* text;
};
const Forgetful forgetful[] = {
    {"org.example.forgot_x",
     "[org.example.forgot_x] gradient: expected inputs that retain_x names, got x(0)"},
    {"org.example.forgot_y",
     "[org.example.forgot_y] gradient: expected outputs that retain_y names, got y(0)"},
    {"org.example.forgot_kernel_x",
     "[org.example.forgot_kernel_x] backward: expected inputs that retain_x names, got x(2)"},
    {"org.example.forgot_kernel_y",
     "[org.example.forgot_kernel_y] backward: expected outputs that retain_y names, got y(0)"},
};

Variable vector(std::vector<double> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    return Variable(Array::from(values, {n}));
}

}  // namespace

TEST_CASE("what is not retained") {
    load_plugin(FORGOT);
    const Variable w = vector({5, 6}), b = vector({7});
    for (const Forgetful& f : forgetful) {
        const Variable x = vector({3, 4});
        const Variable y = PluginFunction(f.function)({&x, &w, &b})[0];
        y.set_grad(vector({1, 1}));
        CHECK_THROWS_WITH(y.backward(), doctest::Contains(f.text));
        CHECK(!x.grad());
    }
    for (const bool with_b : {true, false}) {
        const Variable x = vector({3, 4}), v = vector({5, 6}), c = vector({7}), none;
        const Variable y = PluginFunction("org.example.product")({&x, &v, with_b ? &c : &none})[0];
        y.set_grad(vector({1, 10}));
        y.backward();
        CHECK(x.grad().host<double>()[1] == 60);
        CHECK(v.grad().host<double>()[1] == 40);
        if (with_b) CHECK(c.grad().host<double>()[0] == 11);
    }
}
