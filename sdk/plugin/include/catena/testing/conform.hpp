// conform(): checks what is expected of every function, for the calls that its descriptor gives as
// examples, or for a call that is found by trying.
//
//     World world({"my.catena", "math.catena", "array.catena"});  // and what gradients use
//     CHECK(conform(world, "org.example.swish").failures() == "");  // one function
//     CHECK(conform(world).failures() == "");                       // all of the plugins to test
#pragma once

#include <optional>

#include "catena/testing/compare.hpp"
#include "catena/testing/report.hpp"
#include "catena/testing/world.hpp"

namespace catena::testing {

// The checks to run, and their tolerances.
struct Settings {
    Tolerance float64 = {1e-9, 1e-10};
    Tolerance float32 = {1e-4, 1e-5};
    Tolerance float16 = {4e-3, 2e-3};
    Tolerance bfloat16 = {3e-2, 2e-2};
    Tolerance differences = {1e-5, 1e-6};  // of second order: ten times this
    double step = 1e-4;                    // of finite differences
    unsigned seed = 1;                     // of all random numbers
    // Run only this check, for functions that crash in another one.
    std::optional<Check> only;      // and the checks that it depends on
    bool large = true;              // also long calls, for vectors and for threads
    std::int64_t elements = 40000;  // of an input of the calls for threads
    bool gradients = true;
    const char* device = nullptr;  // only kernels of the backend of this name

    bool wants(Check check) const;
    bool wants_kernels(int phase) const;
    // Returns the check that a violation counts for: `usual`, or the only check that runs.
    Check blamed(Check usual) const { return only.value_or(usual); }
};

// The plugins that gradients are composed of must be in the world. Results are deterministic.
Report conform(World& world, const std::string& name, const Settings& settings = {});

// One report for each function in World::names().
struct Reports : std::vector<Report> {
    // Returns a line for each failure, or an empty text. No function at all is a failure, too.
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

// check(): tests one call of a function, given its inputs, its attributes and the expected outputs.
//
//     World world(MY_PLUGIN);
//     CHECK(check(world, {.function = "org.example.swish",
//                         .inputs = {Array::from<double>({0, 1}, {2})},
//                         .attrs = {set("beta", 2.0)},
//                         .expected = {Array::from<double>({0, 0.880797}, {2})}}) == "");
struct Case {
    std::string function = {};
    Arrays inputs = {};  // floats in float64; Array() for a missing input
    Attrs attrs = {};
    // The outputs, then the updated inputs. An empty Array() is not compared. If the list is empty,
    // kernels and gradients are still compared with each other and with finite differences.
    Arrays expected = {};
    std::string error = {};  // if not empty, the call must be refused with a message containing it
    Tolerance digits = {};   // for `expected`: the precision to which its numbers are written
    double step = 1e-4;      // of finite differences
    Tolerance float32 = {1e-4, 1e-5};
    Tolerance float64 = {1e-9, 1e-10};
    Tolerance differences = {1e-5, 1e-6};
    bool train = true;
    // Whether other shapes are derived from the inputs and tested: empty, of extent 1, wrong. The
    // default is true if there are expected outputs.
    std::optional<bool> edges = {};
};

// The results of all checks of one call.
Report examine(World& world, const Case& c);

// Returns an empty string, or a line for each problem.
inline std::string check(World& world, const Case& c) { return examine(world, c).failures(); }

}  // namespace catena::testing
