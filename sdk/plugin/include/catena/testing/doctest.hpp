// For tests in doctest: CATENA_CONFORM(plugin) makes a test case with a subcase for each function
// that the plugin describes or has kernels for.
//
//     #include <catena/testing/doctest.hpp>
//     CATENA_CONFORM(MY_PLUGIN)
#pragma once

#include <doctest/doctest.h>

#include "catena/testing.hpp"

namespace catena::testing::detail {

inline void conform_subcases(const std::string& plugin) {
    World world(plugin);
    for (const std::string& name : world.names()) {
        DOCTEST_SUBCASE(name.c_str()) {
            const Report report = conform(world, name);
            for (const std::string& text : report.skipped) DOCTEST_MESSAGE(name << ": " << text);
            for (const std::string& text : report.lines())
                DOCTEST_ADD_FAIL_CHECK_AT(plugin.c_str(), 0, text);
        }
    }
}

}  // namespace catena::testing::detail

#define CATENA_CONFORM(plugin)                             \
    DOCTEST_TEST_CASE("CATENA_CONFORM(" #plugin ")") {     \
        catena::testing::detail::conform_subcases(plugin); \
    }
