// expect: communicator/absent
// says: timeout: expected a failure after 0.2 s
// A barrier fails after the group's timeout, not after its own.
#define FAULT absent
#include "communicator.hpp"
