// Whether an attribute's value fits the schema.
#pragma once

#include "catena/testing/attributes.hpp"

namespace catena::testing::detail {

// As hosts do where nothing is lost: 2 to 2.0 and 2.0 to 2.
catena_value converted(const catena_attr_spec& spec, catena_value v);
// Why a value is not of the schema's kind, range and choices, in a host's words; empty: it is.
std::string refused(const catena_attr_spec& spec, const catena_value& v);

}  // namespace catena::testing::detail
