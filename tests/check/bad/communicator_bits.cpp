// expect: communicator/bits
// says: expected the same bits on all ranks
// Rank 1 adds in another order.
#define FAULT bits
#include "communicator.hpp"
