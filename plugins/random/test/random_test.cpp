// Tests random.catena: statistics of fixed seeds, and equality for any number of threads.
#include <doctest/doctest.h>

#include <catena/abi/philox.h>
#include <catena/testing.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

using namespace catena::testing;
using catena::plugin::BFloat16;
using catena::plugin::Float16;
using catena::plugin::Ints;

namespace {

World& world() {
    static World world(RANDOM_PLUGIN);
    return world;
}
Array draw(const char* function, const std::vector<Array>& x, const Attrs& attrs,
           std::uint64_t seed = 1, int threads = 1) {
    Options options;
    options.threads = threads;
    world().seed = seed;
    world().drawn = 0;
    return world().forward(function, x, attrs, options)[0];
}
template <class T>
std::vector<double> numbers(const char* function, std::int64_t n, Attrs attrs = {},
                            std::uint64_t seed = 1, int threads = 1) {
    const std::int64_t shape[] = {n};
    attrs.push_back(set("shape", Ints(shape)));
    attrs.push_back(set("dtype", dtype_of<T>()));
    return draw(function, {}, attrs, seed, threads)
        .to(dtype_of<double>())
        .template values<double>();
}

// The Kolmogorov-Smirnov statistic times sqrt(n): below 1.63 with probability 0.99.
double distance(std::vector<double> x, const std::function<double(double)>& cdf) {
    std::sort(x.begin(), x.end());
    const auto n = static_cast<double>(x.size());
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double p = cdf(x[i]);
        most = std::max({most, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
    }
    return most * std::sqrt(n);
}
// The mean of x^power.
double moment(const std::vector<double>& x, int power) {
    double sum = 0;
    for (const double v : x) sum += std::pow(v, power);
    return sum / static_cast<double>(x.size());
}
// The correlation of elements that are `lag` apart, of numbers with mean 0 and variance 1.
double correlation(const std::vector<double>& x, std::size_t lag) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < x.size(); ++i) sum += x[i] * x[i + lag];
    return sum / static_cast<double>(x.size() - lag);
}
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2)); }
constexpr std::int64_t many = 200000;
constexpr double sigma = 1 / 447.2;  // 1 / sqrt(many)

std::vector<std::int64_t> classes(const std::vector<double>& p, std::int64_t rows, std::int64_t n,
                                  bool replacement, int threads = 1) {
    std::vector<double> all;
    for (std::int64_t r = 0; r < rows; ++r) all.insert(all.end(), p.begin(), p.end());
    const Array given = Array::from<double>(all, {rows, static_cast<std::int64_t>(p.size())});
    return draw("catena.multinomial", {given},
                {set("num_samples", n), set("replacement", replacement)}, 7, threads)
        .values<std::int64_t>();
}

}  // namespace

TEST_CASE_TEMPLATE("uniform: distribution", T, float, double) {
    const auto x = numbers<T>("catena.uniform", many);
    CHECK(distance(x, [](double v) { return std::clamp(v, 0.0, 1.0); }) < 1.63);
    CHECK(*std::min_element(x.begin(), x.end()) >= 0);
    CHECK(*std::max_element(x.begin(), x.end()) < 1);
    auto z = x;
    for (double& v : z) v = (v - 0.5) * std::sqrt(12);
    for (const std::size_t lag : {1, 2, 63, 64, 128, 192, 256})
        CHECK(std::abs(correlation(z, lag)) < 4 * sigma);
    const auto wide = numbers<T>("catena.uniform", many, {set("low", -3.0), set("high", 5.0)});
    CHECK(distance(wide, [](double v) { return (v + 3) / 8; }) < 1.63);
    for (std::size_t i = 0; i < 1000; ++i)
        CHECK(wide[i] == doctest::Approx(8 * x[i] - 3).epsilon(1e-6));
}

TEST_CASE_TEMPLATE("normal: distribution", T, float, double) {
    const auto x = numbers<T>("catena.normal", many);
    CHECK(distance(x, normal_cdf) < 1.63);
    CHECK(std::abs(moment(x, 1)) < 3 * sigma);
    CHECK(std::abs(moment(x, 2) - 1) < 3 * std::sqrt(2) * sigma);
    CHECK(std::abs(moment(x, 3)) < 3 * std::sqrt(15) * sigma);
    CHECK(std::abs(moment(x, 4) - 3) < 3 * std::sqrt(96) * sigma);
    auto squares = x;
    for (double& v : squares) v = (v * v - 1) / std::sqrt(2);
    for (const std::size_t lag : {1, 2, 63, 64, 128, 192, 256}) {
        CHECK(std::abs(correlation(x, lag)) < 4 * sigma);
        CHECK(std::abs(correlation(squares, lag)) < 4 * sigma);
    }
    const auto other =
        numbers<T>("catena.normal", many, {set("mean", -1.0), set("stddev", 0.5)}, 2);
    CHECK(distance(other, [](double v) { return normal_cdf(2 * (v + 1)); }) < 1.63);
}

TEST_CASE_TEMPLATE("normal: the Box-Muller transform of Philox", T, float, double) {
    const auto x = numbers<T>("catena.normal", 256, {}, 5);
    for (std::uint64_t b = 0; b < 64; ++b) {
        std::uint32_t w[4];
        catena_philox(5, b, 0, w);
        const auto two = [](std::uint32_t low, std::uint32_t high) {
            return std::uint64_t{high} << 32 | low;
        };
        const bool wide = sizeof(T) == 8;
        for (std::size_t k = 0; k < (wide ? 1 : 2); ++k) {
            const double u = wide ? (static_cast<double>(two(w[0], w[1]) >> 12) + 0.5) * 0x1p-52
                                  : (w[2 * k] + 0.5) * 0x1p-32;
            // The first quarter of a turn begins at -1/8 of a turn.
            const double turn =
                wide ? static_cast<double>(two(w[2], w[3])) * 0x1p-64 : w[2 * k + 1] * 0x1p-32;
            const double radius = std::sqrt(-2 * std::log(u));
            const double angle = 2 * std::acos(-1.0) * (turn - 0.125);
            const double close = wide ? 1e-14 : 2e-6;
            const std::size_t at = b + 128 * k;
            CHECK(std::abs(x[at] - radius * std::cos(angle)) < close);
            CHECK(std::abs(x[at + 64] - radius * std::sin(angle)) < close);
        }
    }
}

TEST_CASE_TEMPLATE("random numbers: threads, seeds, shapes", T, float, double, Float16, BFloat16) {
    for (const char* function : {"catena.uniform", "catena.normal"}) {
        const auto x = numbers<T>(function, 100003);
        for (const int threads : {2, 3, 7})
            CHECK(numbers<T>(function, 100003, {}, 1, threads) == x);
        CHECK(numbers<T>(function, 100003, {}, 2) != x);
        for (const std::int64_t n : {0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000}) {
            const auto few = numbers<T>(function, n);
            CHECK(few == std::vector<double>(x.begin(), x.begin() + n));
        }
        const double mean = std::accumulate(x.begin(), x.end(), 0.0) / 100003;
        CHECK(std::abs(mean - (std::string(function) == "catena.uniform" ? 0.5 : 0)) < 0.01);
    }
}

TEST_CASE("random numbers: refused") {
    const std::int64_t negative[] = {2, -1}, good[] = {2};
    CHECK_THROWS_WITH(draw("catena.normal", {}, {set("shape", Ints(negative))}),
                      "[catena.normal] shape: expected extents of 0 or more, got (2, -1)");
    CHECK_THROWS_WITH(draw("catena.uniform", {},
                           {set("shape", Ints(good)), set("dtype", dtype_of<std::int32_t>())}),
                      "[catena.uniform] dtype: expected a floating one, got int32");
}

TEST_CASE("multinomial: frequencies") {
    const std::vector<double> p = {0.5, 0, 1.5, 3, 0, 1};
    for (const bool replacement : {false, true}) {
        CAPTURE(replacement);
        // One class of each of many rows, and many classes of one row.
        const auto y = replacement ? classes(p, 2, many / 2, true) : classes(p, many, 1, false);
        std::vector<double> share(p.size());
        for (const std::int64_t c : y) share.at(static_cast<std::size_t>(c)) += 1.0 / many;
        for (std::size_t c = 0; c < p.size(); ++c) {
            if (p[c] == 0) CHECK(share[c] == 0);
            else CHECK(std::abs(share[c] - p[c] / 6) < 4 * sigma * std::sqrt(p[c] / 6));
        }
    }
    // More classes than chunks of sums.
    std::vector<double> wide(5000);
    for (std::size_t c = 0; c < wide.size(); ++c) wide[c] = static_cast<double>(c % 7);
    const double total = std::accumulate(wide.begin(), wide.end(), 0.0);
    double mean = 0;
    double share[7] = {};
    for (const std::int64_t c : classes(wide, 3, many / 3, true)) {
        mean += static_cast<double>(c) / many;
        share[c % 7] += 1.0 / many;
    }
    CHECK(std::abs(mean - 2500) < 4 * 5000 / std::sqrt(12) * sigma);
    for (std::size_t k = 0; k < 7; ++k) {
        const double expected =
            static_cast<double>(k) * std::ceil((5000 - static_cast<double>(k)) / 7) / total;
        CHECK(std::abs(share[k] - expected) < 4 * sigma);
        if (k == 0) CHECK(share[k] == 0);
    }
}

TEST_CASE("multinomial: without replacement") {
    const std::vector<double> p = {1, 2, 0, 3, 4};
    constexpr std::int64_t rows = 50000;
    const auto y = classes(p, rows, 4, false);
    double first[5] = {}, pair[5][5] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<std::int64_t> row(y.begin() + 4 * r, y.begin() + 4 * r + 4);
        first[row[0]] += 1.0 / rows;
        pair[row[0]][row[1]] += 1.0 / rows;
        std::sort(row.begin(), row.end());
        REQUIRE((row == std::vector<std::int64_t>{0, 1, 3, 4}));
    }
    for (std::size_t a = 0; a < 5; ++a) {
        CHECK(std::abs(first[a] - p[a] / 10) < 4 * 0.5 / std::sqrt(rows));
        for (std::size_t b = 0; b < 5; ++b) {
            const double expected = a == b ? 0 : p[a] / 10 * p[b] / (10 - p[a]);
            CHECK(std::abs(pair[a][b] - expected) < 4 * 0.5 / std::sqrt(rows));
        }
    }
}

TEST_CASE("multinomial: threads, one class, huge and tiny probabilities") {
    std::vector<double> p(300);
    for (std::size_t c = 0; c < p.size(); ++c) p[c] = 1.0 + static_cast<double>(c % 5);
    for (const bool replacement : {false, true}) {
        const auto y = classes(p, 200, 20, replacement);
        for (const int threads : {2, 3, 7}) CHECK(classes(p, 200, 20, replacement, threads) == y);
        CHECK(classes({2}, 3, 1, replacement) == std::vector<std::int64_t>{0, 0, 0});
        CHECK(classes({0, 1e300, 0}, 2, 1, replacement) == std::vector<std::int64_t>{1, 1});
        CHECK(classes({0, 5e-324, 0}, 2, 1, replacement) == std::vector<std::int64_t>{1, 1});
        CHECK(classes({1, 1}, 0, 1, replacement).empty());
    }
    CHECK(classes({1, 0, 1e-300}, 1, 2, false) == std::vector<std::int64_t>{0, 2});
}

TEST_CASE("multinomial: refused") {
    const double nan = std::nan("");
    const double inf = std::numeric_limits<double>::infinity();
    const std::pair<std::vector<double>, std::string> wrong[] = {{{0, 0}, "0.0, 0.0"},
                                                                 {{1, -1}, "1.0, -1.0"},
                                                                 {{nan, 1}, "nan, 1.0"},
                                                                 {{inf, 1}, "inf, 1.0"},
                                                                 {{-0.5, 2}, "-0.5, 2.0"}};
    for (const auto& [p, shown] : wrong)
        for (const int n : {1, 2})
            CHECK_THROWS_WITH(classes(p, 1, n, false),
                              ("[catena.multinomial] p, row 0: expected no negative or infinite "
                               "probability, and at least " +
                               std::to_string(n) + " above 0, got " + shown)
                                  .c_str());
    CHECK_THROWS_WITH(classes({-1, 0, 0, 0, 0, 0, 0, 0, 1}, 1, 1, false),
                      "[catena.multinomial] p, row 0: expected no negative or infinite "
                      "probability, and at least 1 above 0, got -1.0, 0.0, "
                      "0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ...");
    CHECK_THROWS_WITH(classes({1, 0}, 1, 2, false),
                      "[catena.multinomial] p, row 0: expected no negative or infinite "
                      "probability, and at least 2 above 0, got 1.0, 0.0");
    CHECK_THROWS_WITH(classes({1, 1}, 1, 3, false),
                      "[catena.multinomial] num_samples: expected at most the number of classes, "
                      "2, without replacement, got 3");
    CHECK_THROWS_WITH(draw("catena.multinomial", {Array::from<double>({1}, {})}, {}),
                      "[catena.multinomial] p.ndim: expected at least 1, got 0");
    CHECK_THROWS_WITH(draw("catena.multinomial", {Array::random<double>({2, 0}, 1)}, {}),
                      "[catena.multinomial] p.shape: expected at least 1 class, got (2, 0)");
}

TEST_CASE("zoneout: the state that is not chosen does not matter") {
    const Array bad = Array::from<float>({NAN, INFINITY, -INFINITY}, {3});
    const Array good = Array::from<float>({1, 2, 3}, {3});
    CHECK(draw("catena.zoneout", {bad, good}, {set("ratio", 0.0)}) == good);
    CHECK(draw("catena.zoneout", {good, bad}, {set("ratio", 1.0)}) == good);
}
