// Tests array.catena: new arrays, padding, selections.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "world.hpp"

using namespace catena::testing;
using catena::plugin::Ints;

TEST_CASE("linspace of integers, and its last number") {
    const auto linspace = [](double start, double stop, std::int64_t n, catena_dtype dtype,
                             bool endpoint = true) {
        return world().forward("catena.linspace", {},
                               {set("start", start), set("stop", stop), set("n", n),
                                set("endpoint", endpoint), set("dtype", dtype)})[0];
    };
    const Array whole = linspace(1, 29, 29, dtype_of<std::int32_t>());
    for (std::int64_t i = 0; i < 29; ++i) CHECK(whole.at(i) == static_cast<double>(i + 1));
    CHECK(linspace(0.1, 0.7, 7, dtype_of<double>()).at(6) == 0.7);
    CHECK(linspace(0.1, 0.7, 7, dtype_of<double>()).at(0) == 0.1);
    CHECK(linspace(3, 5, 1, dtype_of<double>()).values<double>() == std::vector<double>{3});
    CHECK(linspace(3, 5, 0, dtype_of<double>()).size() == 0);
    CHECK(linspace(3, 5, 2, dtype_of<double>(), false).values<double>() ==
          std::vector<double>{3, 4});
    CHECK(linspace(3, 5, 1, dtype_of<double>(), false).values<double>() == std::vector<double>{3});
}

TEST_CASE("eye, tri, tril, triu: diagonals far outside the matrix") {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    const auto matrix = [](const char* name, std::int64_t k) {
        return world()
            .forward(name, {},
                     {set("n", std::int64_t{2}), set("m", std::int64_t{3}), set("k", k)})[0]
            .values<float>();
    };
    const std::vector<float> none(6, 0), all(6, 1);
    const Array ones = Array::from<float>(all, {2, 3});
    for (const std::int64_t k : {most, least}) {
        CHECK(matrix("catena.eye", k) == none);
        CHECK(matrix("catena.tri", k) == (k > 0 ? all : none));
        CHECK(world().forward("catena.tril", {ones}, {set("k", k)})[0].values<float>() ==
              (k > 0 ? all : none));
        CHECK(world().forward("catena.triu", {ones}, {set("k", k)})[0].values<float>() ==
              (k > 0 ? none : all));
    }
    CHECK(matrix("catena.tri", 2) == all);
    CHECK(matrix("catena.tri", -2) == none);
    CHECK(matrix("catena.tri", 1) == std::vector<float>{1, 1, 0, 1, 1, 1});
}

TEST_CASE("pad: the number of integers is exact or refused") {
    const auto pad = [](const Array& x, double value) {
        return world().forward("catena.pad", {x},
                               {set("pad_width", Ints(Dims{1})), set("constant_values", value)})[0];
    };
    const Array x = Array::from<std::int64_t>({7}, {1});
    constexpr std::int64_t limit = std::int64_t{1} << 53;
    CHECK(pad(x, 0x1p53).values<std::int64_t>() == std::vector<std::int64_t>{limit, 7, limit});
    CHECK_THROWS_WITH(pad(x, 0x1p60 + 1),
                      "[catena.pad] constant_values: expected an integer from -2^53 to 2^53, which "
                      "a float64 holds exactly, got 1152921504606846976.0");
    CHECK(pad(iota({1}), 0x1p60).at(0) == 0x1p60);
}

TEST_CASE("pad: short and long axes are NumPy's") {
    const auto index = [](const std::string& mode, std::int64_t i, std::int64_t n) {
        if (mode == "edge") return std::clamp<std::int64_t>(i, 0, n - 1);
        const std::int64_t last = mode == "symmetric" ? n : n - 1;  // elements until the turn
        const std::int64_t period = mode == "wrap" ? n : 2 * last;
        if (period == 0) return std::int64_t{0};
        while (i < 0) i += period;
        while (i >= period) i -= period;
        if (mode == "wrap") return i;
        return i < n ? i : (mode == "symmetric" ? period - 1 : period) - i;
    };
    for (const char* mode : {"edge", "reflect", "symmetric", "wrap"})
        for (const std::int64_t n : {1, 2, 3, 7, 4090})
            for (const std::int64_t before : {1, 20}) {
                CAPTURE(mode);
                CAPTURE(n);
                const std::int64_t widths[] = {before, 11};
                const Array y =
                    world().forward("catena.pad", {iota({n})},
                                    {set("pad_width", Ints(widths)), set("mode", mode)})[0];
                CHECK(y.size() == before + n + 11);
                std::int64_t wrong = 0;
                for (std::int64_t i = 0; i < y.size(); ++i)
                    if (y.at(i) != static_cast<double>(index(mode, i - before, n))) ++wrong;
                CHECK(wrong == 0);
            }
}

TEST_CASE("as_strided refuses places outside x") {
    const auto strided = [](const Dims& shape, const Dims& strides, std::int64_t offset) {
        return world().forward("catena.as_strided", {iota({2, 3})},
                               {set("shape", Ints(shape)), set("strides", Ints(strides)),
                                set("storage_offset", offset)})[0];
    };
    CHECK(strided({3}, {-2}, 5).values<double>() == std::vector<double>{5, 3, 1});
    CHECK(strided({2, 2}, {-3, 2}, 3).values<double>() == std::vector<double>{3, 5, 0, 2});
    CHECK(strided({0, 2}, {9, 9}, -9).shape() == Dims{0, 2});
    CHECK_THROWS_WITH(
        strided({2}, {1}, -1),
        "[catena.as_strided] storage_offset: expected places from 0 to 5, got -1 to 0");
    CHECK_THROWS_WITH(
        strided({4}, {-2}, 5),
        "[catena.as_strided] storage_offset: expected places from 0 to 5, got -1 to 5");
    CHECK_THROWS_WITH(
        strided({3}, {2}, 2),
        "[catena.as_strided] storage_offset: expected places from 0 to 5, got 2 to 6");
}

TEST_CASE("permutate: values, dtypes, shapes without elements, wrong indices") {
    const auto permutate = [](const std::vector<std::int64_t>& indices, bool inv) {
        const Array order = Array::from<std::int64_t>(indices, {3});
        return world().forward("catena.permutate", {iota({3}), order}, {set("inv", inv)})[0];
    };
    CHECK(permutate({2, 0, 1}, false).values<double>() == std::vector<double>{2, 0, 1});
    CHECK(permutate({2, 0, 1}, true).values<double>() == std::vector<double>{1, 2, 0});
    CHECK(permutate({-1, -3, 1}, true).values<double>() == std::vector<double>{1, 2, 0});
    for (const bool inv : {false, true})
        CHECK_THROWS_WITH(permutate({0, 3, 1}, inv),
                          "[catena.permutate] indices[1]: expected an index from -3 to 2, got 3");
    const auto shape = [](const Dims& extents, catena_dtype dtype) {
        catena_meta meta{};
        meta.struct_size = sizeof meta;
        meta.dtype = dtype;
        meta.ndim = static_cast<std::int32_t>(extents.size());
        std::ranges::copy(extents, meta.shape);
        return std::optional(meta);
    };
    for (const bool inv : {false, true}) {
        const auto y =
            world().infer("catena.permutate",
                          {shape({3, 2}, dtype_of<float>()), shape({3}, dtype_of<std::int32_t>())},
                          {set("inv", inv)});
        CHECK(y[0].ndim == 2);
        CHECK(y[0].shape[0] == 3);
    }
    // A repeated index has no inverse.
    CHECK_THROWS_AS(permutate({0, 1, 0}, true), Failure);
    for (const auto dtype : {dtype_of<bool>(), dtype_of<std::uint8_t>(), dtype_of<std::int32_t>()})
        CHECK(world()
                  .forward("catena.permutate",
                           {iota({3}).to(dtype), Array::from<std::int32_t>({2, 1, 0}, {3})},
                           {set("inv", true)})[0]
                  .at(0) == (dtype.code == CATENA_CODE_BOOL ? 1 : 2));
}
