// Tests of Inception: names, shapes, values compared with its parts, gradients.
#include <catena/catena.hpp>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

Array drawn(const Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    fill_uniform(values, -1, 1);
    return Array::from(values, shape);
}

}  // namespace

TEST_CASE("Inception has Chainer's parameters") {
    const links::Inception net(3, 4, 5, 6, 7, 8, 9);
    std::vector<std::string> names;
    for (const auto& parameter : net.collect_parameters()) names.push_back(parameter.name);
    CHECK(names == std::vector<std::string>{"conv1/W", "conv1/b", "conv3/W", "conv3/b", "conv5/W",
                                            "conv5/b", "proj3/W", "proj3/b", "proj5/W", "proj5/b",
                                            "projp/W", "projp/b"});
    CHECK(net.conv1.W.shape() == Shape{4, 3, 1, 1});
    CHECK(net.proj3.W.shape() == Shape{5, 3, 1, 1});
    CHECK(net.conv3.W.shape() == Shape{6, 5, 3, 3});
    CHECK(net.proj5.W.shape() == Shape{7, 3, 1, 1});
    CHECK(net.conv5.W.shape() == Shape{8, 7, 5, 5});
    CHECK(net.projp.W.shape() == Shape{9, 3, 1, 1});
    CHECK_THROWS_AS(links::Inception(3, 4, 5, 6, 0, 8, 9), ShapeError);
}

TEST_CASE("Inception is its four ways side by side, with one relu over all") {
    seed(3);
    links::Inception net(2, 1, 2, 3, 2, 1, 2);
    for (const Shape& shape : {Shape{2, 2, 4, 5}, Shape{1, 2, 1, 1}}) {
        const Variable x(drawn(shape).astype(Dtype::float32));
        const Variable y = net(x);
        CHECK(y.shape() == Shape{shape[0], 7, shape[2], shape[3]});
        const Variable parts =
            F::concat({net.conv1(x), net.conv3(F::relu(net.proj3(x))),
                       net.conv5(F::relu(net.proj5(x))), net.projp(F::max_pooling_2d(x, 3, 1, 1))});
        CHECK(y.data().to_vector<float>() == F::relu(parts).data().to_vector<float>());
        // relu is applied last: the parts have negative values.
        const auto numbers = parts.data().to_vector<float>();
        CHECK(*std::min_element(numbers.begin(), numbers.end()) < 0);
    }
}

TEST_CASE("Inception: gradients of both orders, copies") {
    seed(0);
    const links::Inception original(2, 1, 2, 2, 1, 1, 2);
    links::Inception net = deep_copy(original);
    gradient_check::Options options{.eps = 1e-6, .atol = 1e-6, .rtol = 1e-5};
    options.params = net.parameters();
    std::vector<Array> ggx{drawn({1, 2, 3, 4})};
    for (const Variable& p : options.params) {
        // With biases of 0, channels whose inputs are all 0 would lie on relu's kink.
        p.set_data(p.ndim() == 1 ? drawn(p.shape()) : p.data().astype(Dtype::float64));
        ggx.push_back(drawn(p.shape()));
    }
    const auto call = [&](const std::vector<Variable>& x) { return std::vector{net(x[0])}; };
    const std::vector<Array> x{drawn({1, 2, 3, 4})};
    const std::vector<Array> gy{drawn({1, 6, 3, 4})};
    CHECK_NOTHROW(gradient_check::check_backward(call, x, gy, options));
    CHECK_NOTHROW(gradient_check::check_double_backward(call, x, gy, ggx, options));
    CHECK(original.conv1.W.dtype() == Dtype::float32);
    F::sum(net(Variable(x[0]))).backward();
    for (const Variable& p : net.parameters()) CHECK(p.grad().shape() == p.shape());
    for (const Variable& p : original.parameters()) CHECK_FALSE(p.grad());
}

TEST_CASE("Inception without a graph") {
    links::Inception net(1, 1, 1, 1, 1, 1, 1);
    const no_backprop_mode scope;
    const Variable y = net(Variable(Array::ones({1, 1, 3, 3})));
    CHECK(y.shape() == Shape{1, 4, 3, 3});
    CHECK_FALSE(y.requires_grad());
}
