// expect: communicator/messages

// Messages are received in the order of sending, whatever their tags are.
#define FAULT tags
#include "communicator.hpp"
