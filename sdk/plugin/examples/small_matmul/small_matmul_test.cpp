// small_matmul: the test compares all kernels of a function, from any plugin, and reports which one
// ran.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("small_matmul") {
    World world(PLUGIN);
    for (const bool transa : {false, true})
        for (const bool transb : {false, true})
            CHECK(check(world, {.function = "catena.matmul",
                                .inputs = {Array::random<double>({3, 3}, 1),
                                           Array::random<double>({3, 3}, 2)},
                                .attrs = {set("transa", transa), set("transb", transb)}}) == "");
    CHECK(conform(world, "catena.matmul").failures() == "");

    const auto who = [&](std::int64_t n) {
        const Array square = Array::random<float>({n, n}, 1);
        world.forward("catena.matmul", {square, square});
        return world.ran();
    };
    CHECK(who(8) == "org.example.small_matmul");
    CHECK(who(9) == "org.catena.math");
    const Array stack = Array::random<float>({2, 3, 3}, 1), row = Array::random<float>({3}, 1);
    for (const auto& [a, b] : {std::pair(stack, stack), {row, stack}, {stack, row}, {row, row}}) {
        world.forward("catena.matmul", {a, b});
        CHECK(world.ran() == "org.catena.math");
    }
}
