// For tests in GoogleTest: CATENA_CONFORM(plugin) makes a test of each function that the plugin
// describes or has kernels for, as in --gtest_filter='*org_example_swish'.
//
//     #include <catena/testing/gtest.hpp>
//     CATENA_CONFORM(MY_PLUGIN)
#pragma once

#include <gtest/gtest.h>

#include "catena/testing.hpp"

namespace catena::testing::detail {

// If the plugin cannot be loaded, returns one empty name, whose test fails with the reason.
inline std::vector<std::string> functions_of(const std::string& plugin) {
    try {
        std::vector<std::string> names = World(plugin).names();
        if (!names.empty()) return names;
    } catch (const Failure&) {  // the test fails with the reason
    }
    return {""};
}
inline std::string test_name(const ::testing::TestParamInfo<std::string>& function) {
    std::string name = function.param.empty() ? "loads" : function.param;
    for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
}
inline void expect_conform(const std::string& plugin, const std::string& function) {
    World world(plugin);
    if (function.empty()) return;
    const Report report = conform(world, function);
    for (const std::string& text : report.skipped) GTEST_LOG_(INFO) << function << ": " << text;
    for (const std::string& text : report.lines()) ADD_FAILURE() << text;
}

}  // namespace catena::testing::detail

#define CATENA_CONFORM(plugin) CATENA_CONFORM_AT(plugin, __LINE__)
#define CATENA_CONFORM_AT(plugin, line) CATENA_CONFORM_OF(plugin, line)
#define CATENA_CONFORM_OF(plugin, line) CATENA_CONFORM_AS(plugin, CatenaConform##line)
#define CATENA_CONFORM_AS(plugin, suite)                                                         \
    class suite : public ::testing::TestWithParam<std::string> {};                               \
    TEST_P(suite, conforms) { catena::testing::detail::expect_conform(plugin, GetParam()); }     \
    INSTANTIATE_TEST_SUITE_P(Plugin, suite,                                                      \
                             ::testing::ValuesIn(catena::testing::detail::functions_of(plugin)), \
                             catena::testing::detail::test_name);
