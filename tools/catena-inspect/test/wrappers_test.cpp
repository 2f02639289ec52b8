// Typed wrappers of a third party's plugin, generated when this program is built.
#include <catena/loader/plugins.hpp>
#include <catena/operators.hpp>

#include <doctest/doctest.h>
#include <example/functions.hpp>

using namespace catena;

TEST_CASE("wrappers call the plugin, on variables and on arrays") {
    load_plugin(PLUGIN);
    const Array x = Array::from<float>({1, 2}, {2}), y = Array::from<float>({3, 4}, {2});
    const Variable vx(x), vy(y), vz(x);
    const Variable w = example::mul_add(vx, vy, vz);
    CHECK(w.data().to_vector<float>() == std::vector<float>{4, 10});
    w.set_grad(Array::ones({2}));
    w.backward();
    CHECK(vx.grad().to_vector<float>() == std::vector<float>{3, 4});
    CHECK(example::mul_add(x, y, x).to_vector<float>() == std::vector<float>{4, 10});
}
