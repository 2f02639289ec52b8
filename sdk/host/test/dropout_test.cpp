// Tests of F::dropout: the share of kept elements, the mask of the gradient, modes, seeds.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <cmath>
#include <limits>
#include <thread>

using namespace catena;
namespace F = catena::functions;

namespace {

Array numbers(std::int64_t n, Device device = {}) {
    std::vector<float> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = 1 + static_cast<float>(i % 97) / 8;
    return Array::from(v, {n}, device);
}
template <class T = float>
std::vector<T> values(const Variable& x) {
    return x.data().to_vector<T>();
}
std::vector<float> drop(std::uint64_t first_seed, double ratio = 0.5) {
    seed(first_seed);
    return values(F::dropout(Variable(numbers(1000)), ratio));
}

}  // namespace

TEST_CASE_TEMPLATE("what is kept is x / (1 - ratio), a share of about 1 - ratio", T, float,
                   double) {
    seed(1);
    constexpr std::int64_t n = 100003;
    for (const double ratio : {0.1, 0.3, 0.5, 0.9}) {
        CAPTURE(ratio);
        const Variable x(numbers(n).astype(dtype_of<T>));
        const Variable y = F::dropout(x, ratio);
        CHECK(y.dtype() == x.dtype());
        const auto in = values<T>(x);
        const auto out = values<T>(y);
        const double exact = std::numeric_limits<T>::epsilon() * 4;
        std::int64_t kept = 0;
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < in.size(); ++i) {
            if (out[i] == 0) continue;
            ++kept;
            const double expected = static_cast<double>(in[i]) / (1 - ratio);
            wrong += !(std::abs(out[i] - expected) <= exact * expected);
        }
        CHECK(wrong == 0);
        const double deviation = std::sqrt(ratio * (1 - ratio) / n);
        CHECK(std::abs(static_cast<double>(kept) / n - (1 - ratio)) < 5 * deviation);
    }
}

TEST_CASE("every position is dropped as often as any other") {
    seed(2);
    const Variable x(Array::ones({300}));
    std::vector<int> dropped(300);
    for (int round = 0; round < 400; ++round) {
        const auto y = values(F::dropout(x, 0.25));
        for (std::size_t i = 0; i < y.size(); ++i) dropped[i] += y[i] == 0;
    }
    const auto [least, most] = std::minmax_element(dropped.begin(), dropped.end());
    CHECK(*least > 100 - 45);  // 100 expected, standard deviation 8.7
    CHECK(*most < 100 + 45);
}

TEST_CASE("ratio 0 and test mode change nothing and draw nothing") {
    seed(3);
    const std::vector<float> odd{0, 1e-40F, HUGE_VALF, -3, std::nanf("")};
    const auto check_identity = [&](double ratio) {
        const Variable x(Array::from(odd, {5}));
        const Variable y = F::dropout(x, ratio);
        const auto out = values(y);
        CHECK(std::equal(out.begin(), out.end() - 1, odd.begin()));
        CHECK(std::isnan(out[4]));
        y.set_grad(Array::from(odd, {5}));
        y.backward();
        const auto gx = x.grad().to_vector<float>();
        CHECK(std::equal(gx.begin(), gx.end() - 1, odd.begin()));
        CHECK(std::isnan(gx[4]));
    };
    const auto offset = random_state(Device::current()).offset;
    check_identity(0);
    {
        const using_config scope(&Config::train, false);
        check_identity(0.5);
        check_identity(0);
    }
    CHECK(random_state(Device::current()).offset == offset);
    (void)F::dropout(Variable(numbers(3)), 0.5);
    CHECK(random_state(Device::current()).offset > offset);
}

TEST_CASE("what is dropped is 0, be it infinite or NaN") {
    seed(4);
    for (const float bad : {HUGE_VALF, std::nanf("")}) {
        const Variable x(Array::full({1000}, bad));
        const auto y = values(F::dropout(x, 0.5));
        const auto zeros = std::count(y.begin(), y.end(), 0.F);
        CHECK(zeros > 400);
        CHECK(zeros < 600);
        CHECK(std::count_if(y.begin(), y.end(), [](float v) { return !std::isfinite(v); }) ==
              1000 - zeros);
    }
}

TEST_CASE("a ratio out of range is an error that draws nothing") {
    const auto offset = random_state(Device::current()).offset;
    const Variable x(numbers(4));
    for (const double ratio : {-0.1, 1.0, 1.5, HUGE_VAL, std::nan("")}) {
        CAPTURE(ratio);
        contains(error_of<InvalidError>([&] { (void)F::dropout(x, ratio); }), "ratio");
    }
    const using_config scope(&Config::train, false);
    CHECK_THROWS_AS((void)F::dropout(x, 1.0), InvalidError);
    CHECK(random_state(Device::current()).offset == offset);
    CHECK_THROWS_AS((void)F::dropout(Variable(Array::zeros({2}, Dtype::int32))), Error);
}

TEST_CASE("the gradient of every order goes through the mask of the call") {
    seed(5);
    const Variable x(numbers(777).astype(Dtype::float64));
    const Variable y = F::dropout(x, 0.3);
    (void)F::dropout(x, 0.3);  // advances the random stream
    const auto through = [&](const std::vector<double>& g) {
        auto result = g;
        for (std::size_t i = 0; i < g.size(); ++i) {
            result[i] = values<double>(y)[i] == 0 ? 0 : g[i] * (1 / (1 - 0.3));
        }
        return result;
    };
    std::vector<double> g(777);
    fill_normal(g, 0, 1);
    const Variable gy(Array::from(g, {777}));
    {
        const using_config scope(&Config::train, false);  // the call was made in training mode
        const Variable gx = grad({y}, {x}, {gy}, {}, {.enable_double_backprop = true})[0];
        CHECK(values<double>(gx) == through(g));
        std::vector<double> gg(777);
        fill_normal(gg, 0, 1);
        CHECK(values<double>(grad({gx}, {gy}, {Variable(Array::from(gg, {777}))})[0]) ==
              through(gg));
    }
    y.set_grad(gy.data());
    y.backward();
    y.backward();  // accumulates
    auto twice = through(g);
    for (double& v : twice) v *= 2;
    CHECK(x.grad().to_vector<double>() == twice);
}

TEST_CASE("the gradient against differences, the mask held still") {
    const auto dropped = [](const std::vector<Variable>& v) {
        seed(6);
        return std::vector{F::dropout(v[0] * v[0], 0.4)};
    };
    std::vector<double> v(60);
    fill_normal(v, 0, 1);
    const std::vector<Array> x{Array::from(v, {3, 4, 5})};
    CHECK_NOTHROW(gradient_check::check_backward(dropped, x, x));
    CHECK_NOTHROW(gradient_check::check_double_backward(dropped, x, x, x));
}

TEST_CASE("seed() repeats the draws, another seed and another call do not") {
    CHECK(drop(7) == drop(7));
    CHECK(drop(7) != drop(8));
    const auto first = drop(7);
    const auto second = values(F::dropout(Variable(numbers(1000)), 0.5));
    CHECK(first != second);
    (void)drop(7);
    CHECK(values(F::dropout(Variable(numbers(1000)), 0.5)) == second);
    // A smaller array gets the same first numbers. Each device has a random stream of its own.
    seed(7);
    const auto begin = values(F::dropout(Variable(numbers(10)), 0.5));
    CHECK(std::equal(begin.begin(), begin.end(), first.begin()));
    seed(7);
    const Device other = Device::get("cpu:1");
    const auto before = random_state(Device::get("cpu:0")).offset;
    const Variable there = F::dropout(Variable(numbers(1000, other)), 0.5);
    CHECK(there.device() == other);
    CHECK(random_state(Device::get("cpu:0")).offset == before);
}

TEST_CASE("the draws are the same for any number of threads") {
    const Device device = Device::get("cpu:0");
    const auto run = [&](int threads) {
        device.set_threads(threads);
        seed(9);
        return values(F::dropout(Variable(numbers(1 << 18)), 0.5));
    };
    const auto one = run(1);
    const auto two = run(2);
    const auto five = run(5);
    device.set_threads(0);
    CHECK(one == two);
    CHECK(one == five);
}

TEST_CASE("train is the thread's own") {
    const Variable x(numbers(1000));
    const using_config scope(&Config::train, false);
    std::vector<float> there;
    std::thread([&] { there = values(F::dropout(x, 0.5)); }).join();
    CHECK(there != values(x));
    CHECK(values(F::dropout(x, 0.5)) == values(x));
}

TEST_CASE("shapes: none, one, many; what records nothing") {
    CHECK(F::dropout(Variable(Array::zeros({0, 3}))).shape() == Shape{0, 3});
    const Variable one(Array::full({}, 3.0));
    const float y = F::dropout(one, 0.5).data().item<float>();
    CHECK((y == 0 || y == 6));
    CHECK(F::dropout(Variable(Array::ones({2, 3, 1, 5})), 0.5).shape() == Shape{2, 3, 1, 5});
    CHECK(F::dropout(Variable(numbers(3), true), 0.5).is_volatile());
    const no_backprop_mode scope;
    const Variable z = F::dropout(Variable(numbers(1000)), 0.5);
    CHECK(z.creator() == nullptr);
    CHECK(std::ranges::count(values(z), 0.F) > 400);  // train mode stays on
}
