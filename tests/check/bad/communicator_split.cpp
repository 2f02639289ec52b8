// expect: communicator/split
// says: info(): expected rank
// The key of split() is ignored.
#define FAULT split
#include "communicator.hpp"
