// expect: communicator/mismatch
// says: sum of float32 x 10 on the others
// The reductions of the ranks are not compared.
#define FAULT mismatch
#include "communicator.hpp"
