// expect: communicator/silent
// A failure is printed.
#define FAULT silent
#include "communicator.hpp"
