// A link with values of every kind that can be saved.
#pragma once

#include <catena/links.hpp>

using namespace catena;  // NOLINT: of tests alone

struct All : Link {
    links::Linear l{2, 3};
    Parameter half{Array::ones({2}, Dtype::float16)};
    Parameter brain{Array::full({2}, 0.5, Dtype::bfloat16)};
    Parameter scalar{Array::full({}, 1.25, Dtype::float64)};
    Array flags = Array::from<bool>({true, false, true}, {3});
    Array ids = Array::from<std::int64_t>({-1, 1LL << 40}, {1, 2});
    Array small = Array::from<std::int32_t>({7}, {1});
    Array bytes = Array::from<std::uint8_t>({255}, {1});
    Array none = Array::zeros({0, 3});
    std::int64_t count = 5;
    std::uint64_t big = ~0ULL;
    double rate = 0.1;
    void visit(Visitor& v) override {
        v("l", l)("half", half)("brain", brain)("scalar", scalar)("flags", flags)("ids", ids);
        v("small", small)("bytes", bytes)("none", none)("count", count)("big", big)("rate", rate);
        v.require("version", 3).require("text", "a \"b\" \\ \n ü");
    }
};
