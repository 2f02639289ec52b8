// The index arithmetic of CUDA kernels, on the CPU: nothing of that size is allocated.
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

// Where an operand is at an element of the tensor, by NumPy's rule, the long way.
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

template <class U>
void check_part(const Walk<U, 2>& walk, const Drawn& drawn, std::int64_t first,
                const std::int64_t (&at)[2], std::vector<int>& seen) {
    for (std::int64_t u = 0; u < walk.units(); ++u) {
        const auto unit = walk.locate(static_cast<U>(u));
        REQUIRE(unit.count >= 1);
        REQUIRE(unit.count <= walk.width);
        if (walk.whole()) REQUIRE(unit.count == walk.width);
        for (int j = 0; j < unit.count; ++j) {
            const std::int64_t element = first + unit.first + j;
            ++seen.at(static_cast<std::size_t>(element));
            std::int64_t own[2];
            walk.locate(static_cast<U>(unit.first + j), own);
            for (int k = 0; k < 2; ++k) {
                const std::int64_t place = offset_of(element, drawn.shape, drawn.operands[k]);
                REQUIRE(at[k] + unit.at[k] + (walk.single(k) ? 0 : j) == place);
                REQUIRE(at[k] + own[k] == place);
            }
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("division by a product", U, std::uint32_t, std::uint64_t) {
    constexpr U most = U(1) << (8 * sizeof(U) - 1);  // n is below it
    std::vector<U> numbers = {1, 2, 3, 4, 5, 6, 7, 9, 10, 15, 16, 17, 49, 255, 641, 65535, 65537};
    for (U p = 1 << 20; p <= most / 2; p *= 2)
        numbers.insert(numbers.end(), {U(p - 1), p, U(p + 1)});
    numbers.push_back(most - 1);
    std::mt19937_64 random(1);
    for (int i = 0; i < 200; ++i) numbers.push_back(static_cast<U>(random() % (most - 1)) + 1);
    for (const U d : numbers) {
        const Divider<U> divider(d);
        CHECK(divider.quotient(0) == 0);
        for (const U n : numbers) {
            REQUIRE(divider.quotient(n) == n / d);
            REQUIRE(divider.quotient(n / d * d) == n / d);
            if (n / d > 0) REQUIRE(divider.quotient(n / d * d - 1) == n / d - 1);
        }
    }
    CHECK(Divider<U>(most).quotient(most - 1) == 0);
}

TEST_CASE_TEMPLATE("walks over operands that are broadcast, whole and in parts", U, std::uint32_t,
                   std::uint64_t) {
    std::mt19937 random(2);
    int parts = 0;
    for (int i = 0; i < 400; ++i) {
        const Drawn drawn(random);
        const Shape operands[] = {drawn.operands[0], drawn.operands[1]};
        Walk<U, 2> walk;
        REQUIRE(walk.build(drawn.shape, operands, 1 << random() % 4));
        for (const std::int64_t limit : {1000000, 7, 1}) {
            std::vector<int> seen(static_cast<std::size_t>(size_of(drawn.shape)));
            walk.for_each_part(
                [&](const Walk<U, 2>& part, std::int64_t first, const std::int64_t(&at)[2]) {
                    CHECK(part.units() <= limit);
                    check_part(part, drawn, first, at, seen);
                    ++parts;
                },
                limit);
            CHECK(std::count(seen.begin(), seen.end(), 1) == std::ssize(seen));
        }
    }
    CHECK(parts > 2000);
}

TEST_CASE("more than 2^31 elements: parts whose units are counted in 32 bits") {
    const std::int64_t big = std::int64_t{1} << 33;
    for (const Extents& shape : {Extents{3, big + 1}, Extents{big, 3},
                                 Extents{5, 7, 1 << 20, 3, 129}, Extents{2, 2, big}}) {
        const Extents row(shape.end() - 1, shape.end());
        Extents column = shape;
        column.back() = 1;
        const Shape operands[] = {row, column};
        Walk<std::uint32_t, 2> walk;
        REQUIRE(walk.build(shape, operands, 4));
        std::int64_t elements = 0;
        int n = 0;
        walk.for_each_part([&](const auto& part, std::int64_t first, const std::int64_t(&at)[2]) {
            REQUIRE(part.units() > 0);
            REQUIRE(part.units() < std::int64_t{1} << 31);
            REQUIRE(first == elements);
            for (const std::int64_t u : {std::int64_t{0}, part.units() / 2, part.units() - 1}) {
                const auto unit = part.locate(static_cast<std::uint32_t>(u));
                for (int k = 0; k < 2; ++k)
                    REQUIRE(at[k] + unit.at[k] ==
                            offset_of(first + unit.first, shape, operands[k]));
            }
            const auto last = part.locate(static_cast<std::uint32_t>(part.units() - 1));
            elements = first + last.first + last.count;
            ++n;
        });
        CHECK(elements == size_of(shape));
        CHECK(n > 1);
    }
}

TEST_CASE("axes that differ are few: more are refused") {
    const Extents shape(16, 2);
    Extents comb(16, 1);
    for (std::size_t d = 0; d < 16; d += 2) comb[d] = 2;
    Walk<std::uint32_t, 2> two;
    const Shape operands[] = {shape, comb};
    CHECK(two.build(shape, operands, 4));
    Walk<std::uint32_t, 17> many;
    std::vector<Shape> all(17, Shape(shape));
    CHECK(many.build(shape, all.data(), 4));
    all[3] = comb;
    CHECK_FALSE(many.build(shape, all.data(), 4));
}

TEST_CASE("folds: every term once, at the sum that it belongs to") {
    std::mt19937 random(3);
    for (int i = 0; i < 400; ++i) {
        const Drawn drawn(random);
        const auto set = static_cast<std::uint32_t>(random());
        const auto summed = [&](std::size_t d) { return (set >> d & 1) != 0; };
        const std::uint64_t steps[] = {0, 0, 1, 1, 2, 2, 2};
        const Fold fold(drawn.shape, summed, 1 << random() % 4, i % 2 == 0 ? nullptr : steps);
        Extents kept = drawn.shape;
        for (std::size_t d = 0; d < kept.size(); ++d)
            if (summed(d)) kept[d] = 1;
        REQUIRE(fold.n_kept == size_of(kept));
        std::vector<int> seen(static_cast<std::size_t>(size_of(drawn.shape)));
        for (std::int64_t u = 0; u < fold.kept_units; ++u) {
            const Fold::Unit k = fold.locate_kept(static_cast<std::uint64_t>(u));
            for (std::int64_t v = 0; v < fold.reduced_units; ++v) {
                const Fold::Unit r = fold.locate_reduced(static_cast<std::uint64_t>(v));
                for (int j = 0; j < (fold.rows ? r.count : k.count); ++j) {
                    const std::int64_t element = k.at + r.at + j;
                    ++seen.at(static_cast<std::size_t>(element));
                    REQUIRE(k.out + (fold.rows ? 0 : j) == offset_of(element, drawn.shape, kept));
                }
            }
        }
        CHECK(std::count(seen.begin(), seen.end(), 1) == std::ssize(seen));
        CHECK(fold.kept_lanes * fold.reduced_lanes == Fold::block);
    }
}

TEST_CASE("folds: few long sums are split, many are not, and all parts are there") {
    const auto splits = [](Extents shape, std::uint32_t set, int width) {
        const Fold f(
            shape, [&](std::size_t d) { return (set >> d & 1) != 0; }, width);
        CHECK(f.splits * f.per_split >= f.reduced_units);
        CHECK((f.splits - 1) * f.per_split < f.reduced_units);
        CHECK(f.blocks * f.kept_lanes >= f.kept_units);
        return f.splits;
    };
    CHECK(splits({1 << 24}, 1, 4) == 1024);
    CHECK(splits({std::int64_t{1} << 35}, 1, 4) == 1024);
    CHECK(splits({1 << 20, 64}, 1, 4) == 1024);
    CHECK(splits({1 << 20, 64}, 2, 4) == 1);
    CHECK(splits({100, 100}, 1, 4) == 1);
    CHECK(splits({64, 256, 56, 56}, 0b1101, 4) > 1);
    CHECK(splits({7}, 0, 4) == 1);
    CHECK(splits({}, 0, 4) == 1);
}
