// Parameters that no link lists: for links and optimizers.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

// A link lists the parameter in visit(), or an optimizer trains it.
void note_listed(const Variable& parameter) noexcept;

// Reports parameters that this thread has made and nobody has listed, but which have a gradient:
// they are neither trained nor saved. Throws GraphError in debug mode, else logs a warning.
void report_unlisted();

}  // namespace catena
