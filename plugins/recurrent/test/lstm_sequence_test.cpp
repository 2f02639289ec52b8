// Tests lstm_sequence of recurrent.catena (gradients compose functions of math, array, activation).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;
using catena::plugin::Ints;

namespace {

World& world() {
    static World world({RECURRENT_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    return world;
}

struct Sample {
    std::vector<std::int64_t> rows;
    std::int64_t units;
    bool has_h0 = true, has_c0 = true;

    std::int64_t total() const {
        std::int64_t n = 0;
        for (const std::int64_t r : rows) n += r;
        return n;
    }
    Attrs attrs() const { return {set("rows", Ints(rows))}; }
    template <class T>
    std::vector<Array> inputs() const {
        const Dims state = {rows[0], units};
        return {Array::random<T>({total(), 4 * units}, 1), Array::random<T>({4 * units, units}, 2),
                has_h0 ? Array::random<T>(state, 3) : Array(),
                has_c0 ? Array::random<T>(state, 4) : Array()};
    }
};
const Sample samples[] = {
    {{2, 2, 2}, 3},
    {{3, 2, 2, 1}, 2},
    {{1}, 1},
    {{2, 2}, 1, false, false},
    {{2, 1}, 3, false, true},
    {{2, 2, 1}, 2, true, false},
    {{3, 3, 0}, 2},
    {{0, 0}, 2},
    {{2, 1}, 67},
};

Array slice(const Array& x, std::int64_t from, std::int64_t to) {
    return world().forward("catena.get_item", {x},
                           {set("begin", Ints(&from, 1)), set("end", Ints(&to, 1))})[0];
}

// Returns h and c of all steps, computed with catena.lstm and products.
std::vector<Array> step_by_step(const Sample& s, const std::vector<Array>& in) {
    const auto of = [](const char* name, const std::vector<Array>& x, const Attrs& attrs = {}) {
        return world().forward(name, x, attrs)[0];
    };
    const Array zeros =
        Array::constant({s.rows[0], s.units}, catena::plugin::dtype_of<double>(), 0);
    Array h = in[2] ? in[2] : zeros;
    Array c = in[3] ? in[3] : zeros;
    std::vector<Array> all_h, all_c;
    std::int64_t first = 0;
    for (const std::int64_t n : s.rows) {
        const Array gates =
            of("catena.add", {slice(in[0], first, first + n),
                              of("catena.matmul", {slice(h, 0, n), in[1]}, {set("transb", true)})});
        const auto next = world().forward("catena.lstm", {slice(c, 0, n), gates});
        all_c.push_back(c = next[0]);
        all_h.push_back(h = next[1]);
        first += n;
    }
    return {of("catena.concat", all_h, {set("axis", 0)}),
            of("catena.concat", all_c, {set("axis", 0)})};
}

}  // namespace

TEST_CASE("lstm_sequence: all kernels and gradients") {
    for (const Sample& s : samples)
        CHECK(check(world(), {"catena.lstm_sequence", s.inputs<double>(), s.attrs()}) == "");
    for (const Dims& x : {Dims{3, 2, 12}, Dims{1, 1, 12}, Dims{2, 0, 12}, Dims{0, 2, 12}}) {
        const Dims state = {x[1], 3};
        CHECK(check(world(),
                    {"catena.lstm_sequence",
                     {Array::random<double>(x, 1), Array::random<double>({12, 3}, 2),
                      Array::random<double>(state, 3), Array::random<double>(state, 4)}}) == "");
    }
    CHECK(check(world(), {"catena.lstm_sequence",
                          {Array::random<double>({2, 3, 0}, 1), Array::random<double>({0, 0}, 2),
                           Array(), Array()}}) == "");
}

TEST_CASE("lstm_sequence: many steps without elements are none") {
    const std::int64_t huge = std::int64_t{1} << 40;
    const Array w = Array::random<double>({4, 1}, 1);
    for (const Dims& shape : {Dims{huge, 0, 4}, Dims{0, huge, 4}}) {
        const Array x(shape, catena::plugin::dtype_of<double>());
        const auto y = world().forward("catena.lstm_sequence", {x, w});
        const auto gx = world().backward("catena.lstm_sequence", {x, w}, y, {y[0], y[1], Array()});
        CHECK(gx[1] == Array::from<double>({0, 0, 0, 0}, {4, 1}));
        CHECK(world().gradient("catena.lstm_sequence", {x, w}, y, {y[0], y[1], Array()})[1] ==
              gx[1]);
    }
}

TEST_CASE("lstm_sequence: as lstm, step by step") {
    for (const Sample& s : samples) {
        const auto in = s.inputs<double>();
        const auto y = world().forward("catena.lstm_sequence", in, s.attrs());
        const auto expected = step_by_step(s, in);
        for (std::size_t i = 0; i < 2; ++i) CHECK(compare(y[i], expected[i], {1e-13, 1e-15}) == "");
    }
    // With equal numbers of rows, packed rows and a 3-d array give the same result.
    const Sample s = {{3, 3}, 2};
    const auto in = s.inputs<double>();
    auto blocks = in;
    blocks[0] = in[0].reshaped({2, 3, 8});
    const auto y = world().forward("catena.lstm_sequence", in, s.attrs());
    const auto z = world().forward("catena.lstm_sequence", blocks);
    CHECK(z[0].shape() == Dims{2, 3, 2});
    for (std::size_t i = 0; i < 2; ++i) CHECK(z[i].values<double>() == y[i].values<double>());
}

TEST_CASE("lstm_sequence: a gradient may be missing, or not wanted") {
    const Sample s = {{3, 2, 2}, 5};
    const auto in = s.inputs<double>();
    const auto y = world().forward("catena.lstm_sequence", in, s.attrs());
    const Array gh = Array::random<double>({7, 5}, 5), gc = Array::random<double>({7, 5}, 6);
    const Array zero = Array::from<double>(std::vector<double>(35), {7, 5});
    const auto run = [&](const std::vector<Array>& gy, const Options& options = {}) {
        return world().backward("catena.lstm_sequence", in, y, gy, s.attrs(), options);
    };
    CHECK(run({gh, Array(), Array()}) == run({gh, zero, Array()}));
    CHECK(run({Array(), gc, Array()}) == run({zero, gc, Array()}));
    const auto all = run({gh, gc, Array()});
    for (std::uint64_t targets = 1; targets < 16; ++targets) {
        Options options;
        options.targets = targets;
        const auto some = run({gh, gc, Array()}, options);
        for (std::size_t i = 0; i < 4; ++i)
            if ((targets >> i & 1) != 0) CHECK(some[i] == all[i]);
    }
}

TEST_CASE("lstm_sequence: large, several threads") {
    const Sample s = {{20, 20, 19, 7}, 650};
    const auto in = s.inputs<float>();
    const auto y = world().forward("catena.lstm_sequence", in, s.attrs());
    const std::vector<Array> gy = {Array::random<float>({66, 650}, 5),
                                   Array::random<float>({66, 650}, 6), Array()};
    const auto gx = world().backward("catena.lstm_sequence", in, y, gy, s.attrs());
    Options options;
    options.threads = 3;
    CHECK(world().forward("catena.lstm_sequence", in, s.attrs(), options) == y);
    CHECK(world().backward("catena.lstm_sequence", in, y, gy, s.attrs(), options) == gx);
    const auto exact = world().gradient("catena.lstm_sequence", in, y, gy, s.attrs());
    for (std::size_t i = 0; i < 4; ++i) CHECK(compare(gx[i], exact[i], {1e-3, 1e-4}) == "");
}

TEST_CASE("lstm_sequence refuses") {
    const auto message = [](const Dims& x, const Dims& w, const Dims& h0, const Dims& c0,
                            std::vector<std::int64_t> rows = {}) -> std::string {
        const auto array = [](const Dims& shape) {
            return shape.empty() ? Array() : Array::random<float>(shape, 1);
        };
        try {
            world().forward("catena.lstm_sequence", {array(x), array(w), array(h0), array(c0)},
                            {set("rows", Ints(rows))});
        } catch (const Failure& e) {
            return e.what();
        }
        return "";
    };
    const std::string name = "[catena.lstm_sequence] ";
    CHECK(message({2, 8}, {8, 2}, {}, {}) == name + "x.ndim: expected 3, or 2 with rows, got 2");
    CHECK(message({1, 2, 8}, {8, 2}, {}, {}, {2}) ==
          name + "x.ndim: expected 2, for there are rows, got 3");
    CHECK(message({1, 2, 8}, {8}, {}, {}) == name + "W.ndim: expected 2, got 1");
    CHECK(message({1, 2, 8}, {7, 2}, {}, {}) ==
          name + "W.shape[0]: expected 8, 4 times its columns, got 7");
    CHECK(message({1, 2, 9}, {8, 2}, {}, {}) == name + "x.shape[2]: expected 8 as W's rows, got 9");
    CHECK(message({1, 2, 8}, {8, 2}, {3, 2}, {}) == name + "h0.shape: expected (2, 2), got (3, 2)");
    CHECK(message({3, 8}, {8, 2}, {}, {3, 2}, {2, 1}) ==
          name + "c0.shape: expected (2, 2), got (3, 2)");
    CHECK(message({3, 8}, {8, 2}, {}, {}, {1, 2}) ==
          name + "rows[1]: expected from 0 to 1, as the step before, got 2");
    CHECK(message({3, 8}, {8, 2}, {}, {}, {2, -1}) ==
          name + "rows[1]: expected from 0 to 1, as x has left, got -1");
    CHECK(message({3, 8}, {8, 2}, {}, {}, {4}) ==
          name + "rows[0]: expected from 0 to 3, as x has left, got 4");
    CHECK(message({3, 8}, {8, 2}, {}, {}, {2}) ==
          name + "rows: expected a sum of 3, x's rows, got 2");
}
