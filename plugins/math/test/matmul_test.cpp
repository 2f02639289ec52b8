// Tests catena.matmul: compares products of matrices, vectors and stacks with plain loops.
#include "math_test.hpp"

TEST_CASE("matmul") {
    for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
            const Attrs attrs = {set("transa", ta), set("transb", tb)};
            const Array a = Array::random<double>(ta ? Dims{4, 3} : Dims{3, 4}, 1);
            const Array b = Array::random<double>(tb ? Dims{5, 4} : Dims{4, 5}, 2);
            CHECK(check(world(), {"catena.matmul", {a, b}, attrs}) == "");
            const Array y = world().forward("catena.matmul", {a, b}, attrs)[0];
            for (std::int64_t i = 0; i < 3; ++i)
                for (std::int64_t j = 0; j < 5; ++j) {
                    double sum = 0;
                    for (std::int64_t k = 0; k < 4; ++k)
                        sum += a.at(ta ? k * 3 + i : i * 4 + k) * b.at(tb ? j * 4 + k : k * 5 + j);
                    CHECK(y.at(i * 5 + j) == doctest::Approx(sum));
                }
        }
    const Array none = Array::random<double>({0, 3}, 1);
    CHECK(check(world(), {"catena.matmul", {none, Array::random<double>({3, 2}, 1)}}) == "");
    CHECK(check(world(), {"catena.matmul",
                          {Array::random<double>({2, 0}, 1), Array::random<double>({0, 2}, 1)}}) ==
          "");
    CHECK_THROWS_WITH(world().forward("catena.matmul", {none, none}),
                      "[catena.matmul] b.shape[0]: expected 3, got 0");
}

// Products of stacks, computed from NumPy's definition.
Array plain_matmul(const Array& a, bool ta, const Array& b, bool tb) {
    const auto matrices = [](Dims d, bool first) {
        if (d.size() == 1) d.insert(first ? d.begin() : d.end(), 1);
        return d;
    };
    const Dims da = matrices(a.shape(), true), db = matrices(b.shape(), false);
    ta = ta && a.shape().size() > 1;
    tb = tb && b.shape().size() > 1;
    const std::int64_t m = da.end()[ta ? -1 : -2], k = da.end()[ta ? -2 : -1];
    const std::int64_t n = db.end()[tb ? -2 : -1];
    Dims lead(std::max(da.size(), db.size()) - 2, 1);
    const auto extent = [&](const Dims& d, std::size_t axis) {
        const std::size_t missing = lead.size() + 2 - d.size();
        return axis < missing ? 1 : d[axis - missing];
    };
    for (std::size_t d = 0; d < lead.size(); ++d)
        lead[d] = extent(da, d) == 1 ? extent(db, d) : extent(da, d);
    std::int64_t count = 1;
    for (const std::int64_t d : lead) count *= d;
    Dims dy = lead;
    if (a.shape().size() > 1) dy.push_back(m);
    if (b.shape().size() > 1) dy.push_back(n);
    std::vector<double> y;
    for (std::int64_t at = 0; at < count; ++at) {
        const auto from = [&](const Dims& d) {
            std::int64_t offset = 0, step = 1, rest = at;
            for (std::size_t axis = lead.size(); axis-- > 0; rest /= lead[axis]) {
                if (extent(d, axis) == 1) continue;
                offset += rest % lead[axis] * step;
                step *= lead[axis];
            }
            return offset;
        };
        const std::int64_t at_a = from(da) * m * k, at_b = from(db) * k * n;
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::int64_t l = 0; l < k; ++l)
                    sum += a.at(at_a + (ta ? l * m + i : i * k + l)) *
                           b.at(at_b + (tb ? j * k + l : l * n + j));
                y.push_back(sum);
            }
    }
    return Array::from<double>(y, dy);
}

TEST_CASE("matmul of stacks") {
    // Leading axes of a and b.
    const std::pair<Dims, Dims> leads[] = {
        {{2}, {2}},    {{2, 3}, {}},  {{}, {3}},           {{2, 1}, {3}},    {{1, 2}, {2, 1}},
        {{2, 3}, {3}}, {{1}, {2, 3}}, {{2, 1, 2}, {3, 1}}, {{2, 3}, {2, 1}}, {{0}, {1}},
        {{2, 0}, {}},  {{1, 1}, {1}}, {{2, 2}, {1, 2}},    {{3, 0}, {3, 1}}, {{2, 1, 3}, {2, 1}},
    };
    const Dims extents[] = {{2, 3, 4}, {1, 3, 4}, {2, 3, 1}, {1, 3, 1}, {2, 1, 3},
                            {1, 1, 1}, {2, 0, 3}, {0, 2, 3}, {2, 2, 0}};  // m, k, n
    const auto run = [](const auto& lead, const Dims& e, bool ta, bool tb) {
        Dims da = lead.first, db = lead.second;
        da.insert(da.end(), {e[ta ? 1 : 0], e[ta ? 0 : 1]});
        db.insert(db.end(), {e[tb ? 2 : 1], e[tb ? 1 : 2]});
        const Array a = Array::random<double>(da, 1);
        const Array b = Array::random<double>(db, 2);
        CAPTURE(da);
        CAPTURE(db);
        CAPTURE(ta);
        CAPTURE(tb);
        CHECK(check(world(), {.function = "catena.matmul",
                              .inputs = {a, b},
                              .attrs = {set("transa", ta), set("transb", tb)},
                              .expected = {plain_matmul(a, ta, b, tb)}}) == "");
    };
    unsigned i = 0;  // varies the flags
    for (const auto& lead : leads)
        for (const Dims& e : {extents[0], extents[0]}) {
            run(lead, e, i % 2 != 0, i % 4 > 1);
            ++i;
        }
    for (const Dims& e : extents)
        for (unsigned f = 0; f < 4; ++f) run(leads[f == 3 ? 11 : f + 1], e, f % 2 != 0, f > 1);
}

TEST_CASE("matmul of 1-d arrays") {
    for (const auto& [da, db] : {std::pair<Dims, Dims>{{3}, {3}},
                                 {{0}, {0}},
                                 {{3}, {3, 2}},
                                 {{3}, {4, 3, 2}},
                                 {{2, 3}, {3}},
                                 {{4, 2, 3}, {3}},
                                 {{1}, {1, 1}},
                                 {{2, 0, 3}, {3}},
                                 {{3}, {0, 3, 2}}}) {
        const Array a = Array::random<double>(da, 1);
        const Array b = Array::random<double>(db, 2);
        CAPTURE(da);
        CAPTURE(db);
        const Array y = plain_matmul(a, false, b, false);
        CHECK(check(world(), {.function = "catena.matmul", .inputs = {a, b}, .expected = {y}}) ==
              "");
        // transa and transb do not change a 1-d operand.
        const bool ta = da.size() == 1, tb = db.size() == 1;
        CHECK(check(world(), {.function = "catena.matmul",
                              .inputs = {a, b},
                              .attrs = {set("transa", ta), set("transb", tb)},
                              .expected = {y}}) == "");
    }
}

TEST_CASE("matmul refuses shapes that do not match") {
    const auto error = [](const Dims& a, const Dims& b, bool tb = false) {
        try {
            world().forward("catena.matmul",
                            {Array::random<double>(a, 1), Array::random<double>(b, 2)},
                            {set("transb", tb)});
        } catch (const std::exception& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(error({}, {2}) == "[catena.matmul] a.ndim: expected at least 1, got 0");
    CHECK(error({2, 2}, {}) == "[catena.matmul] b.ndim: expected at least 1, got 0");
    CHECK(error({2}, {3}) == "[catena.matmul] b.shape[0]: expected 2, got 3");
    CHECK(error({2, 2, 3}, {4, 5}) == "[catena.matmul] b.shape[-2]: expected 3, got 4");
    CHECK(error({2, 2, 3}, {4, 5}, true) == "[catena.matmul] b.shape[-1]: expected 3, got 5");
    CHECK(error({2, 3, 3}, {3, 3, 3}) ==
          "[catena.matmul] b.shape[:-2]: expected broadcastable to (2,), got (3,)");
}

TEST_CASE("matmul: stacks that several threads compute have the bits of one thread") {
    for (const auto& [da, db] : {std::pair<Dims, Dims>{{32, 40, 30}, {32, 30, 50}},
                                 {{3, 200, 210}, {3, 210, 220}},
                                 {{7, 1, 500}, {7, 500, 300}}}) {
        const Array a = Array::random<float>(da, 1);
        const Array b = Array::random<float>(db, 2);
        const Array y = world().forward("catena.matmul", {a, b})[0];
        Options options;
        options.threads = 3;
        CHECK(world().forward("catena.matmul", {a, b}, {}, options)[0] == y);
        CHECK(compare(y, plain_matmul(a, false, b, false), {1e-4, 1e-3}) == "");
    }
}
