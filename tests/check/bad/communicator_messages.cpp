// expect: communicator/messages
// says: message: element 0
// Of several messages the last is received first.
#define FAULT messages
#include "communicator.hpp"
