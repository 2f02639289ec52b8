// Tests of operators and generated wrappers: signatures, values of single elements.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <atomic>
#include <cmath>
#include <thread>

using namespace catena;
namespace F = catena::functions;

namespace {

using Floats = std::vector<float>;

Variable var(std::initializer_list<float> values) {
    return Variable(Array::from(values, {static_cast<std::int64_t>(values.size())}));
}
Floats values(const Variable& x) { return x.data().to_vector<float>(); }

}  // namespace

TEST_CASE("operators with variables and with numbers on either side") {
    const Variable a = var({1, 2});
    const Variable b = var({4, 8});
    CHECK(values(a + b) == Floats{5, 10});
    CHECK(values(a - b) == Floats{-3, -6});
    CHECK(values(a * b) == Floats{4, 16});
    CHECK(values(b / a) == Floats{4, 4});
    CHECK(values(pow(b, a)) == Floats{4, 64});
    CHECK(values(-a) == Floats{-1, -2});
    CHECK(values(+a) == Floats{1, 2});
    CHECK(values(a + 1) == Floats{2, 3});
    CHECK(values(1 + a) == Floats{2, 3});
    CHECK(values(a - 1) == Floats{0, 1});
    CHECK(values(1 - a) == Floats{0, -1});
    CHECK(values(a * 3) == Floats{3, 6});
    CHECK(values(3 * a) == Floats{3, 6});
    CHECK(values(b / 2) == Floats{2, 4});
    CHECK(values(8 / b) == Floats{2, 1});
    CHECK(values(pow(b, 2)) == Floats{16, 64});
    CHECK(values(pow(2, a)) == Floats{2, 4});
    Variable sum;
    for (int i = 0; i < 3; ++i) sum += a;
    CHECK(values(sum) == Floats{3, 6});
    CHECK(values(a) == Floats{1, 2});
}

TEST_CASE("gradients flow through operators") {
    const Variable x = var({3});
    const Variable y = (2 * x * x - x / 4 + 1) / x;
    y.backward();
    CHECK(x.grad().item<float>() == doctest::Approx(2 - 1 / 9.0));
}

TEST_CASE("wrappers have Chainer's signatures") {
    const Variable x(Array::from({-1.F, 2.F, 3.F, -4.F}, {2, 2}));
    CHECK(values(F::relu(x)) == Floats{0, 2, 3, 0});
    CHECK(values(F::softmax(x, 1))[0] == doctest::Approx(1 / (1 + std::exp(3.0))));
    CHECK(values(F::softmax(x, 0))[0] == doctest::Approx(1 / (1 + std::exp(4.0))));
    CHECK(values(F::softmax(x)) == values(F::softmax(x, 1)));
    const Variable t(Array::from<std::int32_t>({1, 0}, {2}));
    CHECK(F::accuracy(x, t).data().item<float>() == 1);
    CHECK(F::softmax_cross_entropy(x, t).data().item<float>() ==
          doctest::Approx((std::log1p(std::exp(-3.0)) + std::log1p(std::exp(-7.0))) / 2));
    const Variable w(Array::from({1.F, 1.F}, {1, 2}));
    CHECK(values(F::linear(x, w)) == Floats{1, -1});
    CHECK(values(F::linear(x, w, var({10}))) == Floats{11, 9});
    CHECK(F::reshape(x, {4}).shape() == Shape{4});
    CHECK(F::reshape(x, {1, -1}).shape() == Shape{1, 4});
    CHECK(F::reshape(x, std::vector<std::int64_t>{4, 1}).shape() == Shape{4, 1});
    CHECK(F::sum(x).data().item<float>() == 0);
}

TEST_CASE("operators and wrappers on arrays compute the same, and record nothing") {
    const Array a = Array::from({1.F, 2.F}, {2});
    const Array b = Array::from({4.F, 8.F}, {2});
    const auto floats = [](const Array& x) { return x.to_vector<float>(); };
    CHECK(floats(a + b) == Floats{5, 10});
    CHECK(floats(a - b) == Floats{-3, -6});
    CHECK(floats(a * b) == Floats{4, 16});
    CHECK(floats(b / a) == Floats{4, 4});
    CHECK(floats(pow(b, a)) == Floats{4, 64});
    CHECK(floats(-a) == Floats{-1, -2});
    CHECK(floats(+a) == Floats{1, 2});
    CHECK(floats(a + 1) == Floats{2, 3});
    CHECK(floats(1 + a) == Floats{2, 3});
    CHECK(floats(a - 1) == Floats{0, 1});
    CHECK(floats(1 - a) == Floats{0, -1});
    CHECK(floats(a * 3) == Floats{3, 6});
    CHECK(floats(3 * a) == Floats{3, 6});
    CHECK(floats(b / 2) == Floats{2, 4});
    CHECK(floats(8 / b) == Floats{2, 1});
    CHECK(floats(pow(b, 2)) == Floats{16, 64});
    CHECK(floats(pow(2, a)) == Floats{2, 4});
    CHECK(floats(a) == Floats{1, 2});

    const Array m = Array::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {2, 3});
    CHECK(floats(dot(m, F::transpose(m))) == Floats{14, 32, 32, 77});
    CHECK(values(dot(Variable(m), F::transpose(Variable(m)))) == Floats{14, 32, 32, 77});
    CHECK(floats(F::matmul(m, m, false, true)) == Floats{14, 32, 32, 77});
    CHECK(floats(F::sum(m)) == Floats{21});
    CHECK(floats(F::sum(m, 0)) == Floats{5, 7, 9});
    CHECK(F::sum(m, {0, 1}, true).shape() == Shape{1, 1});
    CHECK(floats(F::exp(Array::zeros({2}))) == Floats{1, 1});
    CHECK(floats(F::concat({a, b}, 0)) == Floats{1, 2, 4, 8});
    CHECK(floats(F::concat(std::vector<Array>{b, a}, 0)) == Floats{4, 8, 1, 2});
    CHECK(floats(F::linear(m, Array::ones({1, 3}))) == Floats{6, 15});
    CHECK(floats(F::linear(m, Array::ones({1, 3}), Array::ones({1}))) == Floats{7, 16});
    CHECK(F::reshape(m, {-1}).shape() == Shape{6});
    const Array gates = Array::zeros({1, 4});
    const auto cell = F::lstm(Array::full({1, 1}, 2), gates);
    CHECK(floats(cell.c) == Floats{1});
    CHECK(cell.h.item<float>() == doctest::Approx(std::tanh(1.0) / 2));
    const Array texts = Array::zeros({2, 3, 4});
    CHECK(F::lstm_sequence(texts, Array::ones({4, 1})).h.shape() == Shape{2, 3, 1});
    const auto layer = F::lstm_sequence(F::reshape(texts, {6, 4}), Array::zeros({4, 1}), {},
                                        Array::full({3, 1}, 4), {3, 2, 1});
    CHECK(floats(layer.c) == Floats{2, 2, 2, 1, 1, 0.5F});
    const Array wide = a.astype(Dtype::float64) / 4;
    CHECK(wide.to_vector<double>() == std::vector<double>{0.25, 0.5});
}

TEST_CASE("a sequence has the gradients of its steps, and of those the gradients") {
    const auto random = [](const Shape& shape, double scale) {
        double v = 0.3;
        std::vector<double> list;
        for (std::int64_t i = 0; i < shape.size(); ++i)
            list.push_back(scale * (v = 3.9 * v * (1 - v)) - scale / 2);
        return Array::from(list, shape);
    };
    const auto gradients = [&](bool whole) {
        const Variable x(random({3, 2, 8}, 2)), w(random({8, 2}, 3)), h0(random({2, 2}, 1)),
            c0(random({2, 2}, 4));
        Variable sum;
        if (whole) {
            const auto y = F::lstm_sequence(x, w, h0, c0);
            sum = F::sum(y.h * y.h) + F::sum(y.c * y.c * y.h);
        } else {
            Variable h = h0, c = c0;
            for (const Variable& each : F::split_axis(x, 3, 0)) {
                const auto next =
                    F::lstm(c, F::reshape(each, {2, 8}) + F::matmul(h, w, false, true));
                h = next.h;
                c = next.c;
                sum += F::sum(h * h) + F::sum(c * c * h);
            }
        }
        sum.backward(false, true);
        std::vector<std::vector<double>> all;
        Variable squares;
        for (const Variable& v : {x, w, h0, c0}) {
            all.push_back(v.grad().to_vector<double>());
            squares += F::sum(v.grad_variable() * v.grad_variable());
        }
        for (const Variable& v : {x, w, h0, c0}) v.cleargrad();
        squares.backward();
        for (const Variable& v : {x, w, h0, c0}) all.push_back(v.grad().to_vector<double>());
        return all;
    };
    const auto whole = gradients(true), steps = gradients(false);
    REQUIRE(whole.size() == steps.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
        for (std::size_t k = 0; k < whole[i].size(); ++k)
            CHECK(whole[i][k] == doctest::Approx(steps[i][k]).epsilon(1e-11));
}

TEST_CASE("comparisons of arrays are masks") {
    const Array x = Array::from({-1.F, 0.F, 2.F, std::nanf("")}, {4});
    const Array zero = Array::zeros({});
    const auto floats = [](const Array& mask) { return mask.to_vector<float>(); };
    CHECK(floats(x > 0) == Floats{0, 0, 1, 0});
    CHECK(floats(x >= 0) == Floats{0, 1, 1, 0});
    CHECK(floats(x < 0) == Floats{1, 0, 0, 0});
    CHECK(floats(x <= 0) == Floats{1, 1, 0, 0});
    CHECK(floats(0 > x) == floats(x < 0));
    CHECK(floats(0 >= x) == floats(x <= 0));
    CHECK(floats(0 < x) == floats(x > 0));
    CHECK(floats(0 <= x) == floats(x >= 0));
    CHECK(floats(x > zero) == floats(x > 0));
    CHECK(floats(x >= zero) == floats(x >= 0));
    CHECK(floats(x < zero) == floats(x < 0));
    CHECK(floats(x <= zero) == floats(x <= 0));
    CHECK(floats(F::equal(x, zero)) == Floats{0, 1, 0, 0});
    CHECK(floats(F::where(x > 0, x, -1 * Array::ones({4}))) == Floats{-1, -1, 2, -1});
    CHECK((x.astype(Dtype::float64) > 1.5).dtype() == Dtype::bool8);
    CHECK(F::equal(x, zero).dtype() == Dtype::bool8);
    CHECK(F::sum(x > 0).dtype() == Dtype::int64);
    CHECK(F::sum(x > 0).item<int>() == 1);
}

TEST_CASE("arrays of integers: labels and masks, without gradients") {
    const auto ints = [](const Array& a) {
        CHECK(a.dtype() == Dtype::int32);
        return a.to_vector<int>();
    };
    using Values = std::vector<int>;
    const Array i = Array::from<int>({1, 2, 3}, {3});
    CHECK(ints(i + i * i - 1) == Values{1, 5, 11});
    CHECK(ints(2 - i) == Values{1, 0, -1});
    CHECK(ints(-i) == Values{-1, -2, -3});
    CHECK((i > 1).dtype() == Dtype::bool8);
    CHECK((i > 1).to_vector<int>() == Values{0, 1, 1});
    CHECK(F::equal(i, F::get_item(i, {1}, {2})).to_vector<int>() == Values{0, 1, 0});
    CHECK(ints(F::where(i > 1, i, i * 10)) == Values{10, 2, 3});
    const Array total = F::sum(F::broadcast_to(i, {2, 3}));
    CHECK(total.dtype() == Dtype::int64);  // as in NumPy
    CHECK(total.item<int>() == 12);

    const Variable v(i);
    const Variable y = v * v + v;
    CHECK_FALSE(y.requires_grad());
    CHECK(y.creator() == nullptr);
    CHECK_THROWS_AS(F::sum(y).backward(), GraphError);
    Variable w(Array::from({1.F, 2.F, 3.F}, {3}));
    F::sum(F::cast(v * 2, Dtype::float32) * w).backward();
    CHECK(w.grad().to_vector<float>() == Floats{2, 4, 6});
    CHECK_FALSE(v.grad());
}

TEST_CASE("arrays that do not fit are refused as variables are") {
    CHECK_THROWS_AS((void)(Array::zeros({2}) + Array::zeros({3})), ShapeError);
    CHECK_THROWS_AS((void)(Array() + Array::zeros({3})), Error);
    CHECK_THROWS_AS((void)(Array() > 1), Error);
    CHECK_THROWS_AS((void)dot(Array::zeros({2, 3}), Array::zeros({2, 3})), ShapeError);
}

TEST_CASE("dropout follows the configuration") {
    const Variable x(Array::ones({1000}));
    const using_config testing(&Config::train, false);
    CHECK(values(F::dropout(x, 0.5)) == values(x));
    const using_config training(&Config::train, true);
    const auto dropped = values(F::dropout(x, 0.5));
    const auto zeros = std::count(dropped.begin(), dropped.end(), 0.F);
    CHECK(zeros > 400);
    CHECK(zeros < 600);
    CHECK(std::count(dropped.begin(), dropped.end(), 2.F) == 1000 - zeros);
}

TEST_CASE("attributes are checked, and many of them do not confuse a wrapper") {
    const Variable x(Array::ones({2, 2}));
    CHECK_THROWS_AS(F::dropout(x, 1.5), Error);
    for (int round = 0; round < 3; ++round) {
        for (int c = 0; c < 20; ++c) CHECK(values(x + c)[0] == static_cast<float>(1 + c));
    }
    std::thread([&] { CHECK(values(x + 5)[0] == 6); }).join();
}

TEST_CASE("a BoundFunction distinguishes sets of values by kind, length and contents") {
    const Array x = Array::ones({2, 3, 4});
    BoundFunction reshape("catena.reshape", {"shape"});
    for (int round = 0; round < 3; ++round) {
        for (const std::int64_t n : {1, 2, 3, 4, 6, 8, 12, 24}) {
            CHECK(reshape({Ints{n, 24 / n}}).first({{x}}).shape() == Shape{n, 24 / n});
            CHECK(reshape({Ints{n, -1, 1}}).first({{x}}).shape() == Shape{n, 24 / n, 1});
        }
        CHECK(reshape({Ints(24)}).first({{x}}).shape() == Shape{24});
        CHECK(reshape({Ints{24}}).first({{x}}).shape() == Shape{24});
        CHECK_THROWS_AS((void)reshape({Ints(std::span<const std::int64_t>())}).first({{x}}),
                        ShapeError);
    }
    BoundFunction softmax("catena.softmax", {"axis"});
    CHECK(softmax({2}).first({{x}}).to_vector<float>()[0] == 0.25F);
    CHECK(softmax({0}).first({{x}}).to_vector<float>()[0] == 0.5F);
    CHECK_THROWS_AS((void)softmax({0.5}), InvalidError);
    CHECK_THROWS_WITH_AS((void)softmax({0, 1}), "[catena.softmax] attributes: expected 1, got 2",
                         InvalidError);
    CHECK_THROWS_AS((void)softmax({}), InvalidError);
    CHECK_THROWS_AS((void)softmax({true}), InvalidError);
    CHECK_THROWS_AS((void)softmax({"0"}), InvalidError);
    BoundFunction copied = softmax;
    CHECK(copied({2}).first({{x}}).to_vector<float>()[0] == 0.25F);
    BoundFunction cast("catena.cast", {"dtype"});
    for (const Dtype dtype : {Dtype::float64, Dtype::float16, Dtype::float64})
        CHECK(cast({dtype}).first({{x}}).dtype() == dtype);
    BoundFunction tree("catena.binary_hierarchical_softmax", {"tree"});
    const PluginFunction* const bound = &tree({"0 1"});
    CHECK(&tree({"0 1 2"}) != bound);
    CHECK(&tree({std::string("0 1")}) == bound);
}

TEST_CASE("wrappers distinguish 0 from -0, and rebind values that were used long ago") {
    const Variable x = var({1});
    for (int round = 0; round < 2; ++round) {
        CHECK_FALSE(std::signbit(values(x * 0.0)[0]));
        CHECK(std::signbit(values(x * -0.0)[0]));
        CHECK(std::isnan(values(x * std::nan(""))[0]));
        for (int c = 1; c < 12; ++c) CHECK(values(x * c)[0] == static_cast<float>(c));
    }
}

TEST_CASE("wrappers work while a thread ends, even if the thread has used them") {
    static std::atomic<float> result = 0;
    struct AtEnd : ThreadObject {
        ~AtEnd() override { result = values(var({1}) + 5)[0]; }
    };
    std::thread([] {
        keep_for_thread(std::make_unique<AtEnd>());
        CHECK(values(var({1}) + 5)[0] == 6);
    }).join();
    CHECK(result == 6);
}
