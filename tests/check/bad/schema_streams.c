// expect: schema/table
// says: is asynchronous and lacks one of stream_create
#include "backend.h"
SPOIL {
    make_backend();
    shelf.flags |= CATENA_BACKEND_ASYNC;
}
