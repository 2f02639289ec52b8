// expect: communicator/structs
// says: info(): expected the fields within a struct_size of
// info() writes fields that an older caller's structure does not have.
#define FAULT structs
#include "communicator.hpp"
