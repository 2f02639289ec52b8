// Tests reduction.catena: values at edges, wrong calls. Reference values are in golden.py.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>
#include <limits>
#include <numeric>

using namespace catena::testing;
using catena::plugin::Ints;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

World& world() {
    static World world(REDUCTION_PLUGIN);
    return world;
}
Array call(const std::string& name, const Array& x, const Attrs& attrs = {}) {
    return world().forward("catena." + name, {x}, attrs)[0];
}
Array f64(const std::vector<double>& values, const Dims& shape) {
    return Array::from<double>(values, shape);
}

}  // namespace

TEST_CASE("smoke") {
    for (const char* f : {"max","min","argmax","argmin","mean","var","logsumexp","prod","any","all"}) {
        MESSAGE(f);
        Array y = call(f, f64({1,5,2,7,3,4},{2,3}), {set("axis", Ints(std::vector<std::int64_t>{1}))});
        MESSAGE(y.at(0), " ", y.at(1));
    }
}
