// require_same(): checks that all ranks call an operation with the same arguments.
#pragma once

#include <catena/distributed/communicator.hpp>

namespace catena::distributed {

// Throws InvalidError with the first line that differs from the root's, and aborts the group.
void require_same(const Communicator& communicator, std::string_view operation,
                  const std::string& text, int root);

}  // namespace catena::distributed
