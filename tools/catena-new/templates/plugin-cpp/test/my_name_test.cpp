// Tests my_name. check() returns problems as text, for any test framework: CHECK(check(...) == "")
#include <catena/testing.hpp>

#include <cstdio>

using namespace catena::testing;

int main() {
    World world(PLUGIN);
    const std::string problems =
        check(world,
              {.function = "org.example.my_name",
               .inputs = {Array::from<double>({-1, 0, 2}, {3})},
               .attrs = {set("beta", 2.0)},
               .expected = {Array::from<double>({-0.119202922022118, 0, 1.96402758007582}, {3})}}) +
        conform(world).failures();
    std::fputs(problems.c_str(), stderr);
    return problems.empty() ? 0 : 1;
}
