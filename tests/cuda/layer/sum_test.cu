// Sums of the layer: sets of axes, splits and types; every run gives the same bits.
#include "device.hpp"

using namespace layer;

namespace {

// Sums x over the axes in `set` on the device, twice, and checks that the bits are the same.
template <class T, class Op = cuda::Copy<T, T>, class Out = T>
std::vector<Out> sum_on_device(const std::vector<T>& x, const Extents& shape, std::uint32_t set,
                               bool add, std::size_t shift,
                               std::uint64_t* scratch_bytes = nullptr) {
    const auto summed = [&](std::size_t d) { return (set >> d & 1) != 0; };
    std::int64_t n = 1;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (!summed(d)) n *= shape[d];
    const OnDevice<T> from(x, shift);
    const Operand in[] = {{from.data(), shape}};
    const std::uint64_t bytes = cuda::sum_scratch(Op(), shape, summed);
    if (scratch_bytes != nullptr) *scratch_bytes = bytes;
    const OnDevice<std::uint64_t> scratch(std::vector<std::uint64_t>((bytes + 7) / 8, ~0ull));
    std::vector<Out> results[2];
    for (auto& result : results) {
        const OnDevice<Out> y(draw<Out>(n, 7), shift);
        cuda::sum(queue, Op(), shape, in, 0, summed, y.data(), add, scratch.data());
        result = y.values();
        static_cast<void>(scratch.values());  // checks its guards
    }
    CHECK(same_bits(results[0], results[1]));
    return results[0];
}

template <class T>
void check_sum(const Extents& shape, std::uint32_t set, bool add, std::size_t shift) {
    CAPTURE(text_of(Shape(shape)));
    CAPTURE(set);
    const std::vector<T> x = draw<T>(size_of(shape), 5);
    const std::vector<T> y = sum_on_device<T>(x, shape, set, add, shift);
    Extents kept = shape;
    for (std::size_t d = 0; d < kept.size(); ++d)
        if ((set >> d & 1) != 0) kept[d] = 1;
    std::vector<double> wanted(y.size());
    const std::vector<T> before = draw<T>(std::ssize(y), 7);
    if (add) std::transform(before.begin(), before.end(), wanted.begin(), &layer::number<T>);
    for (std::int64_t i = 0; i < size_of(shape); ++i)
        wanted.at(offset_of(i, shape, kept)) += number(x[static_cast<std::size_t>(i)]);
    for (std::size_t i = 0; i < y.size(); ++i) {
        const auto rounded = narrow<T>(static_cast<cuda::Compute<T>>(wanted[i]));
        REQUIRE(number(y[i]) == number(rounded));  // sums of quarters are exact here
    }
}

}  // namespace

TEST_CASE_TEMPLATE("sums over rows, columns, blocks, all and none", T, float, double, Float16,
                   BFloat16, std::int32_t, std::int64_t) {
    const std::pair<Extents, std::uint32_t> all[] = {{{}, 0},
                                                     {{1, 1}, 1},
                                                     {{7}, 1},
                                                     {{7}, 0},
                                                     {{3, 5}, 1},
                                                     {{3, 5}, 2},
                                                     {{3, 5}, 3},
                                                     {{64, 16}, 1},
                                                     {{64, 16}, 2},
                                                     {{2, 3, 49}, 0b101},
                                                     {{2, 16, 8, 8}, 0b1101},
                                                     {{5, 1, 3, 1, 2}, 0b10101},
                                                     {{2, 3, 2, 3, 2}, 0b01010},
                                                     {{700, 3}, 1},
                                                     {{3, 700}, 2},
                                                     {{1000, 33}, 1}};
    for (const auto& [shape, set] : all)
        for (const std::size_t shift : {0, 1}) check_sum<T>(shape, set, shift == 1, shift);
    std::mt19937 random(6);
    for (int i = 0; i < 60; ++i) {
        Extents shape;
        for (std::size_t d = random() % 6; d > 0; --d) shape.push_back(1 + random() % 8);
        check_sum<T>(shape, static_cast<std::uint32_t>(random()), i % 2 == 0, i % 3 == 0);
    }
}

TEST_CASE_TEMPLATE("nothing to sum is 0, or nothing to add", T, float, Float16, std::int64_t) {
    CHECK(same_bits(sum_on_device<T>({}, {0, 3}, 1, false, 0), std::vector<T>(3)));
    CHECK(same_bits(sum_on_device<T>({}, {0, 3}, 1, true, 0), draw<T>(3, 7)));
    CHECK(sum_on_device<T>({}, {3, 0}, 1, false, 0).empty());
    CHECK(same_bits(sum_on_device<T>({}, {3, 0}, 2, false, 0), std::vector<T>(3)));
}

TEST_CASE("few long sums are split over blocks, and are better than one after the other") {
    const std::int64_t n = 300001;
    std::vector<float> x(static_cast<std::size_t>(n));
    std::mt19937 random(8);
    double exact = 0, size = 0;
    for (float& v : x) {
        v = std::uniform_real_distribution<float>(0, 1)(random);
        exact += static_cast<double>(v);
    }
    float plain = 0;
    for (const float v : x) plain += v;
    size = exact;
    std::uint64_t scratch = 0;
    const double got = number(sum_on_device<float>(x, {n}, 1, false, 0, &scratch)[0]);
    CHECK(scratch > 0);
    CHECK(std::abs(got - exact) < 2e-7 * size);
    CHECK(std::abs(got - exact) < std::abs(static_cast<double>(plain) - exact));
    // Column sums of a matrix whose rows are not multiples of a pack.
    const std::int64_t rows = 30000;
    const Extents shape = {rows, 7};
    const std::vector<float> y =
        sum_on_device<float>({x.begin(), x.begin() + rows * 7}, shape, 1, false, 1, &scratch);
    CHECK(scratch > 0);
    for (std::size_t c = 0; c < 7; ++c) {
        double column = 0;
        for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
            column += static_cast<double>(x[r * 7 + c]);
        CHECK(std::abs(number(y[c]) - column) < 3e-7 * column);
    }
}

TEST_CASE("whole numbers are summed modulo 2^64, and none is lost on the way") {
    const std::vector<std::int32_t> x(100000, 0x7fffffff);
    const std::uint64_t sum = 100000ull * 0x7fffffffull;
    CHECK(sum_on_device<std::int32_t>(x, {100000}, 1, false, 0)[0] ==
          static_cast<std::int32_t>(sum));
}

namespace {

// Like check_sum, for an operation whose operands have other shapes.
template <class T>
void check_products(const Extents& shape, const Extents (&from)[3], std::uint32_t set, int which,
                    std::size_t shift) {
    const auto summed = [&](std::size_t d) { return (set >> d & 1) != 0; };
    Extents kept = shape;
    for (std::size_t d = 0; d < kept.size(); ++d)
        if (summed(d)) kept[d] = 1;
    std::vector<T> x[3];
    for (unsigned k = 0; k < 3; ++k) x[k] = draw<T>(size_of(from[k]), k + 1);
    const OnDevice<T> a(x[0], shift), b(x[1]), c(x[2], shift);
    const OnDevice<T> y(std::vector<T>(static_cast<std::size_t>(size_of(kept))));
    const Operand in[] = {{a.data(), from[0]}, {b.data(), from[1]}, {c.data(), from[2]}};
    const OnDevice<char> scratch(std::vector<char>(cuda::sum_scratch(TwoOf<T>(), shape, summed)));
    cuda::sum(queue, TwoOf<T>(), shape, in, which, summed, y.data(), false, scratch.data());
    std::vector<double> wanted(static_cast<std::size_t>(size_of(kept)));
    for (std::int64_t i = 0; i < size_of(shape); ++i) {
        double v[3];
        for (std::size_t k = 0; k < 3; ++k) v[k] = number(x[k][offset_of(i, shape, from[k])]);
        wanted[offset_of(i, shape, kept)] += which == 0 ? v[0] * v[1] + v[2] : v[0] - v[1];
    }
    const std::vector<T> got = y.values();
    for (std::size_t i = 0; i < got.size(); ++i)
        REQUIRE(number(got[i]) == number(narrow<T>(static_cast<cuda::Compute<T>>(wanted[i]))));
}

}  // namespace

TEST_CASE_TEMPLATE("sums of an operation whose operands are broadcast", T, float, double, Float16) {
    const Extents shape = {4, 6, 8};
    for (std::uint32_t set = 0; set < 8; ++set)
        for (const int which : {0, 1})
            for (const std::size_t shift : {0, 1}) {
                check_products<T>(shape, {shape, {6, 1}, {8}}, set, which, shift);
                check_products<T>(shape, {shape, shape, shape}, set, which, shift);
                check_products<T>(shape, {{}, {4, 1, 8}, {1, 6, 1}}, set, which, shift);
            }
    check_products<T>({3, 7, 5}, {{3, 7, 5}, {7, 1}, {3, 1, 5}}, 0b101, 0, 0);
    check_products<T>({2000, 9}, {{2000, 9}, {9}, {2000, 1}}, 1, 0, 0);
}
