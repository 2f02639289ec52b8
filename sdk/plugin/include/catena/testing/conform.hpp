// conform(): everything that is expected of any function, checked for the calls that its descriptor
// gives as examples, or for one that is found by trying.
//
//     World world({"my.catena", "math.catena", "array.catena"});  // and what gradients use
//     CHECK(conform(world, "org.example.swish").failures() == "");  // one function
//     CHECK(conform(world).failures() == "");                       // all of the plugins to test
#pragma once

#include "catena/testing/report.hpp"
#include "catena/testing/settings.hpp"
#include "catena/testing/world.hpp"

namespace catena::testing {

// Plugins that the gradients are composed of have to be in the world. Deterministic.
Report conform(World& world, const std::string& name, const Settings& settings = {});

// Of each function that the plugins to test describe, or have kernels for: World::names().
struct Reports : std::vector<Report> {
    // A line for each failure; empty: nothing failed. No function at all is a failure, too.
    std::string failures() const {
        std::string text = empty() ? "expected a function in the plugins to test, got none\n" : "";
        for (const Report& report : *this) text += report.failures();
        return text;
    }
};
inline Reports conform(World& world, const Settings& settings = {}) {
    Reports reports;
    for (const std::string& name : world.names()) reports.push_back(conform(world, name, settings));
    return reports;
}

}  // namespace catena::testing
