// expect: communicator/results
// says: prod of
// A product is a sum.
#define FAULT results
#include "communicator.hpp"
