// What a recording of work has to know while it goes on.
#pragma once

#include "queue.hpp"

#include <catena/core/array.hpp>

namespace catena {

class Recording;

}  // namespace catena
