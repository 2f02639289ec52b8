// require_same(): checks that all ranks call an operation with the same arguments.
#pragma once

#include <catena/distributed/communicator.hpp>

namespace catena::distributed {

// Throws InvalidError, and aborts the group, on a rank whose text is not the root's. Names the
// first line that differs.
void require_same(const Communicator& communicator, std::string_view operation,
                  const std::string& text, int root);

}  // namespace catena::distributed
