// conform(): everything that is expected of any function, checked for the calls that its descriptor
// gives as examples, or for one that is found by trying.
//
//     World world({"my.catena", "math.catena", "array.catena"});  // with what gradients are made of
//     CHECK(conform(world, "org.example.swish").failures() == "");
#pragma once

#include "catena/testing/report.hpp"
#include "catena/testing/settings.hpp"
#include "catena/testing/world.hpp"

namespace catena::testing {

// Plugins that the gradients are composed of have to be in the world. Deterministic.
CATENA_TESTING_INLINE Report conform(World& world, const std::string& name,
                                     const Settings& settings = {});

}  // namespace catena::testing

#ifndef CATENA_TESTING_SEPARATE
#include "catena/testing/conform_run.hpp"
#endif
