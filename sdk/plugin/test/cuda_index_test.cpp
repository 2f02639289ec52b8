// Tests the index arithmetic of CUDA kernels on the CPU, without allocating such large arrays.
#include <doctest/doctest.h>

#include <catena/plugin/cuda/index.hpp>

#include <algorithm>
#include <random>
#include <vector>

using namespace catena::plugin;
using cuda::Divider;
using cuda::Fold;
using cuda::Walk;

namespace {

using Extents = std::vector<std::int64_t>;

// Returns the offset of an operand at an element of the tensor, by NumPy's broadcasting rule.
std::int64_t offset_of(std::int64_t element, Shape shape, Shape operand) {
    std::int64_t offset = 0;
    std::int64_t stride = 1;
    const std::size_t more = shape.size() - operand.size();
    for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) {
        if (d < more) continue;
        if (operand[d - more] != 1) offset += element % shape[d] * stride;
        stride *= operand[d - more];
    }
    return offset;
}

// Extents drawn from 1 to `most`, and two operands that broadcast to them.
struct Drawn {
    explicit Drawn(std::mt19937& random, int most = 5) {
        const std::size_t n = random() % 7;
        for (std::size_t d = 0; d < n; ++d) shape.push_back(1 + random() % most);
        for (Extents& o : operands) {
            o.assign(shape.begin() + static_cast<std::ptrdiff_t>(random() % (n + 1)), shape.end());
            for (std::int64_t& extent : o)
                if (random() % 3 == 0) extent = 1;
        }
    }
    Extents shape;
    Extents operands[2];
};

}  // namespace

TEST_CASE("division by a product") {
    using U = std::uint64_t;
    constexpr U most = U(1) << 63;  // the limit of n
    std::vector<U> numbers = {1, 2, 3, 4, 5, 6, 7, 9, 10, 15, 16, 17, 49, 255, 641, 65535, 65537};
    for (U p = 1 << 20; p <= most / 2; p *= 2)
        numbers.insert(numbers.end(), {U(p - 1), p, U(p + 1)});
    numbers.push_back(most - 1);
    std::mt19937_64 random(1);
    for (int i = 0; i < 200; ++i) numbers.push_back(static_cast<U>(random() % (most - 1)) + 1);
    for (const U d : numbers) {
        const Divider divider(d);
        CHECK(divider.quotient(0) == 0);
        for (const U n : numbers) {
            REQUIRE(divider.quotient(n) == n / d);
            REQUIRE(divider.quotient(n / d * d) == n / d);
            if (n / d > 0) REQUIRE(divider.quotient(n / d * d - 1) == n / d - 1);
        }
    }
    CHECK(Divider(most).quotient(most - 1) == 0);
}

TEST_CASE("walks over operands that are broadcast") {
    std::mt19937 random(2);
    for (int i = 0; i < 400; ++i) {
        const Drawn drawn(random);
        const Shape operands[] = {drawn.operands[0], drawn.operands[1]};
        Walk<2> walk;
        walk.build(drawn.shape, operands);
        REQUIRE(walk.size == size_of(drawn.shape));
        for (std::int64_t element = 0; element < walk.size; ++element) {
            std::int64_t at[2];
            walk.locate(element, at);
            for (int k = 0; k < 2; ++k)
                REQUIRE(at[k] == offset_of(element, drawn.shape, drawn.operands[k]));
        }
    }
}

TEST_CASE("walks over more than 2^31 elements") {
    const std::int64_t big = std::int64_t{1} << 33;
    for (const Extents& shape : {Extents{3, big + 1}, Extents{big, 3},
                                 Extents{5, 7, 1 << 20, 3, 129}, Extents{2, 2, big}}) {
        const Extents row(shape.end() - 1, shape.end());
        Extents column = shape;
        column.back() = 1;
        const Shape operands[] = {row, column};
        Walk<2> walk;
        walk.build(shape, operands);
        for (const std::int64_t element :
             {std::int64_t{0}, walk.size / 3, walk.size / 2, walk.size - 1}) {
            std::int64_t at[2];
            walk.locate(element, at);
            for (int k = 0; k < 2; ++k) REQUIRE(at[k] == offset_of(element, shape, operands[k]));
        }
    }
}

TEST_CASE("walks with strides, forwards and backwards, over more than 2^31 elements") {
    const Extents shape = {5, std::int64_t{1} << 20, 3, 700};
    const std::int64_t strides[][1] = {{std::int64_t{-1} << 40}, {9000}, {-2100}, {3}};
    Walk<1> walk;
    walk.build_strided(shape, strides);
    for (const std::int64_t element : {std::int64_t{0}, walk.size / 7, walk.size - 1}) {
        std::int64_t rest = element;
        std::int64_t place = 0;
        for (std::size_t d = 4; d-- > 0; rest /= shape[d]) place += rest % shape[d] * strides[d][0];
        std::int64_t at[1];
        walk.locate(element, at);
        CHECK(at[0] == place);
    }
    const std::int64_t dense[][1] = {{std::int64_t{2100} << 20}, {2100}, {700}, {1}};
    walk.build_strided(shape, dense);
    CHECK(walk.n_axes == 1);
}

TEST_CASE("all axes may differ, of any number of operands") {
    const Extents shape(16, 2);
    Extents comb(16, 1);
    for (std::size_t d = 0; d < 16; d += 2) comb[d] = 2;
    Walk<34> walk;
    std::vector<Shape> all(34, Shape(shape));
    walk.build(shape, all.data());
    CHECK(walk.n_axes == 1);
    all[3] = comb;
    walk.build(shape, all.data());
    CHECK(walk.n_axes == 16);
    std::int64_t at[34];
    walk.locate(65535, at);
    CHECK(at[0] == 65535);
    CHECK(at[3] == offset_of(65535, shape, comb));
}

TEST_CASE("folds: every term once, at the sum that it belongs to") {
    std::mt19937 random(3);
    for (int i = 0; i < 400; ++i) {
        const Drawn drawn(random);
        const auto set = static_cast<std::uint32_t>(random());
        const auto summed = [&](std::size_t d) { return (set >> d & 1) != 0; };
        const Fold fold(drawn.shape, summed);
        Extents kept = drawn.shape;
        for (std::size_t d = 0; d < kept.size(); ++d)
            if (summed(d)) kept[d] = 1;
        REQUIRE(fold.kept.size == size_of(kept));
        std::vector<int> seen(static_cast<std::size_t>(size_of(drawn.shape)));
        for (std::int64_t sum = 0; sum < fold.kept.size; ++sum)
            for (std::int64_t term = 0; term < fold.reduced.size; ++term) {
                const std::int64_t element = fold.kept.locate(sum) + fold.reduced.locate(term);
                ++seen.at(static_cast<std::size_t>(element));
                REQUIRE(sum == offset_of(element, drawn.shape, kept));
            }
        CHECK(std::count(seen.begin(), seen.end(), 1) == std::ssize(seen));
        CHECK(fold.kept_lanes * fold.reduced_lanes == Fold::block);
    }
}

TEST_CASE("folds: few long sums are split, many are not, and all parts are there") {
    const auto splits = [](Extents shape, std::uint32_t set) {
        const Fold f(shape, [&](std::size_t d) { return (set >> d & 1) != 0; });
        CHECK(f.splits * f.per_split >= f.reduced.size);
        CHECK((f.splits - 1) * f.per_split < f.reduced.size);
        CHECK(f.blocks * f.kept_lanes >= f.kept.size);
        return f.splits;
    };
    CHECK(splits({1 << 24}, 1) == 1024);
    CHECK(splits({std::int64_t{1} << 35}, 1) == 1024);
    CHECK(splits({1 << 20, 64}, 1) == 512);
    CHECK(splits({1 << 20, 64}, 2) == 1);
    CHECK(splits({100, 100}, 1) == 1);
    CHECK(splits({64, 256, 56, 56}, 0b1101) > 1);
    CHECK(splits({7}, 0) == 1);
    CHECK(splits({}, 0) == 1);
}
