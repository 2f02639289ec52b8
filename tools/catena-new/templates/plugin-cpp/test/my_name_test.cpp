// Tests my_name alone. What is wrong is a text, which fits any test framework: CHECK(check(...) == "")
#include <catena/testing.hpp>

#include <cstdio>

using namespace catena::testing;

int main() {
    World world(PLUGIN);
    const std::string problems =
        check(
            world,
            {.function = "org.example.my_name",
             .inputs = {Array::of<double>({3}, {-1, 0, 2})},
             .attrs = {set("beta", 2.0)},
             .expected = {Array::of<double>({3}, {-0.11920292202211756, 0, 1.9640275800758169})}}) +
        conform(world, "org.example.my_name").failures();
    std::fputs(problems.c_str(), stderr);
    return problems.empty() ? 0 : 1;
}
