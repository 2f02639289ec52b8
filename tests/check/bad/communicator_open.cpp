// expect: communicator/open
// says: expected a local rank below a local size
// A rank is not below its local size.
#define FAULT open
#include "communicator.hpp"
