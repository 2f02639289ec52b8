// expect: nothing
// passes: communicator/open communicator/results communicator/messages communicator/abort
#define FAULT none
#include "communicator.hpp"
