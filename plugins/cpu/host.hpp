// The host's table, and errors with formatted text.
#pragma once

#include <catena/plugin/tables.hpp>

namespace catena_cpu {

using catena::plugin::fail;
inline const catena_host* const& host = catena::plugin::the_host;

}  // namespace catena_cpu
