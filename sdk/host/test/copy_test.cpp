// Tests of F::copy: copied data, and gradients of both orders copied back.
#include <catena/catena.hpp>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

using Doubles = std::vector<double>;
const Device first = Device::get("cpu:0");
const Device second = Device::get("cpu:1");

Variable leaf(Device device) { return Variable(Array::from({1.0, -2.0, 3.0}, {3}, device)); }
Doubles values(const Array& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("there, and the gradient back") {
    for (const auto& [from, to] : {std::pair(first, second), std::pair(second, first)}) {
        const Variable x = leaf(from);
        const Variable y = F::copy(x, to);
        CHECK(y.device() == to);
        CHECK(y.dtype() == Dtype::float64);
        CHECK(values(y.data()) == Doubles{1, -2, 3});
        CHECK(y.creator()->label() == "copy");
        const Variable loss = F::sum(y * y);
        CHECK(loss.device() == to);
        loss.backward(/*retain_grad=*/true);
        CHECK(y.grad().device() == to);
        REQUIRE(x.grad().device() == from);
        CHECK(values(x.grad()) == Doubles{2, -4, 6});
        F::sum(F::copy(x, to)).backward();  // accumulates
        CHECK(values(x.grad()) == Doubles{3, -3, 7});
    }
}

TEST_CASE("the second order, across and back") {
    const Variable x = leaf(first);
    const Variable y = F::copy(x, second);
    const Variable g = grad({F::sum(y * y * y)}, {x}, {}, {}, {.enable_double_backprop = true})[0];
    CHECK(g.device() == first);
    CHECK(values(g.data()) == Doubles{3, 12, 27});
    const Variable gg = grad({F::sum(g)}, {x})[0];
    CHECK(gg.device() == first);
    CHECK(values(gg.data()) == Doubles{6, -12, 18});
    for (const Device to : {first, second}) {
        const auto cube = [to](const std::vector<Variable>& v) {
            const Variable there = F::copy(v[0], to);
            return std::vector{F::copy(there * there * there, first)};
        };
        const std::vector<Array> a{Array::from({0.5, -1.5}, {2}, first)};
        CHECK_NOTHROW(gradient_check::check_backward(cube, a, a));
        CHECK_NOTHROW(gradient_check::check_double_backward(cube, a, a, a));
    }
}

TEST_CASE("devices by name") {
    const Variable x = leaf(first);
    const Variable y = F::copy(x, "cpu:1");
    CHECK(y.device() == second);
    F::sum(y).backward();
    CHECK(values(x.grad()) == Doubles{1, 1, 1});
    CHECK(F::copy(x.data(), std::string("cpu:1")).device() == second);
    CHECK(F::copy(y, "cpu").device() == first);
    CHECK_THROWS_AS((void)F::copy(x, "cpu:99"), DeviceError);
    CHECK_THROWS_AS((void)F::copy(x, "nowhere"), DeviceError);
}

TEST_CASE("to its own device it is new memory") {
    const Variable x = leaf(first);
    const Variable y = F::copy(x, first);
    CHECK(y.data().body() != x.data().body());
    y.data().fill(7);
    CHECK(values(x.data()) == Doubles{1, -2, 3});
    x.data().fill(8);
    CHECK(values(y.data()) == Doubles{7, 7, 7});
    y.set_grad(Array::from({1.0, 2.0, 3.0}, {3}));
    y.backward(true);
    CHECK(values(x.grad()) == Doubles{1, 2, 3});
    x.grad().fill(0);
    CHECK(values(y.grad()) == Doubles{1, 2, 3});

    const Array a = Array::ones({2});
    const Array b = F::copy(a, first);
    a.fill(5);
    CHECK(values(b) == Doubles{1, 1});
    CHECK(F::copy(a, second).device() == second);
}

TEST_CASE("all dtypes and shapes") {
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64,
                              Dtype::int32, Dtype::int64, Dtype::uint8}) {
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{3, 2}}) {
            const Variable x(Array::full(shape, 3, dtype, first));
            const Variable y = F::copy(x, second);
            CHECK(y.dtype() == dtype);
            CHECK(y.shape() == shape);
            CHECK(values(y.data()) == values(x.data()));
            CHECK(y.requires_grad() == is_floating(dtype));
        }
    }
}

TEST_CASE("what records nothing") {
    const Variable v(Array::ones({2}), true);
    CHECK(F::copy(v, second).is_volatile());
    CHECK(F::copy(v, second).creator() == nullptr);
    CHECK(F::copy(as_variable(Array::ones({2})), second).creator() == nullptr);
    const no_backprop_mode scope;
    CHECK(F::copy(leaf(first), second).creator() == nullptr);
}

TEST_CASE("a network over two devices learns as on one") {
    const auto train = [](Device lower_device, Device upper_device) {
        seed(3);
        links::Linear lower(3, 4);
        links::Linear upper(4, 2);
        lower.to(lower_device);
        upper.to(upper_device);
        optimizers::Adam adam;
        auto all = lower.collect_parameters();
        for (const auto& p : upper.collect_parameters())
            all.push_back({"upper/" + p.name, p.variable});
        adam.setup(all);
        const Variable x(Array::from({1.F, 2.F, 3.F, -1.F, 0.5F, 0.F}, {2, 3}, lower_device));
        for (int i = 0; i < 5; ++i) {
            adam.cleargrads();
            const Variable h = F::copy(F::tanh(lower(x)), upper_device);
            const Variable y = F::copy(upper(h), lower_device);
            F::sum(y * y).backward();
            adam.update();
        }
        auto result = values(lower.W.data());
        for (const double v : values(upper.W.data())) result.push_back(v);
        return result;
    };
    const auto expected = train(first, first);
    CHECK(train(first, second) == expected);
    CHECK(train(second, first) == expected);
}

TEST_CASE("what is refused") {
    const Variable x = leaf(first);
    contains(error_of<InvalidError>([&] { (void)F::copy(x, Device()); }), "[copy] device");
    contains(error_of<InvalidError>([&] { (void)F::copy(x.data(), Device()); }), "[copy] device");
    contains(error_of<InvalidError>([&] { (void)F::copy(Variable(), second); }), "[copy] x");
    contains(error_of<InvalidError>([&] { (void)F::copy(Array(), second); }), "[copy] x");
    CHECK_THROWS_AS((void)F::copy(x, Device::get("cpu:99")), DeviceError);
    CHECK_THROWS_AS((void)F::copy(x, Device::get("gpu:0")), DeviceError);
    // Without F::copy, operands on different devices are an error.
    contains(error_of<DeviceError>([&] { (void)(x + leaf(second)); }), "cpu:1");
}
