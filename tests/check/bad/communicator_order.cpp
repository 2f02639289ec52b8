// expect: communicator/order
// says: expected a barrier that is not done
// test() does not look whether the operation is done.
#define FAULT order
#include "communicator.hpp"
