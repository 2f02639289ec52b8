// A plugin author's test with GoogleTest. PLUGIN is the path of a plugin with the function swish.
#include <catena/testing/gtest.hpp>

using namespace catena::testing;

CATENA_CONFORM(PLUGIN)

TEST(Swish, Values) {
    World world(PLUGIN);
    EXPECT_EQ(
        check(world,
              {.function = "org.example.swish",
               .inputs = {Array::from<double>({-1, 0, 1, 2}, {2, 2})},
               .attrs = {set("beta", 2.0)},
               .expected = {Array::from<double>({-0.119203, 0, 0.880797, 1.964028}, {2, 2})}}),
        "");
    EXPECT_EQ(check(world, {.function = "org.example.swish",
                            .inputs = {Array::from<double>({1}, {1})},
                            .attrs = {set("beta", "steep")},
                            .error = "[org.example.swish] attribute 'beta': expected a number"}),
              "");
}
