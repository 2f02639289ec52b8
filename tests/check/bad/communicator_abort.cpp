// expect: communicator/abort
// says: aborted: out of patience
// The reason of abort() is lost.
#define FAULT abort
#include "communicator.hpp"
