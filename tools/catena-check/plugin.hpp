// The plugin in this process, and a testing::World of it.
#pragma once

#include <catena/testing/sample.hpp>

#include "check.hpp"

namespace catena::check {

// Why the table cannot be read; empty if it can.
std::string damage(const catena_manifest& manifest, const catena_plugin& table);

// The plugin, then those that it is tested with.
std::unique_ptr<testing::World> make_world(const Subject& subject);
// Why nothing of the subject has a part in calls of the subject's function; empty if something has.
std::string absent_in(testing::World& world, const Subject& subject);
// A call of the example's kind with longer first extents, up to `most` and to inputs of `total`
// elements, if the function accepts one.
std::optional<testing::Sample> longer(testing::World& world, const catena_function& f,
                                      const testing::Example& example, std::int64_t total,
                                      std::int64_t most, unsigned seed);
// Sets an element to the nearest number that its dtype has; integers have no NaN.
void set_clamped(testing::Array& a, std::int64_t i, double value);
// A value for each attribute: the one that is given or its default.
std::vector<catena_value> values_of(const catena_function& f, const testing::OwnedAttrs& attrs);

}  // namespace catena::check
