// expect: communicator/absent
// says: timeout: expected a failure after 0.2 s
// A barrier fails later than its timeout.
#define FAULT absent
#include "communicator.hpp"
