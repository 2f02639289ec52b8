// expect: communicator/refusals
// start() takes an unknown reduction for a sum.
#define FAULT refusals
#include "communicator.hpp"
