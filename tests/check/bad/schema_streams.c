// expect: schema/table
// says: expected stream_create(), got NULL
#include "backend.h"
SPOIL {
    make_backend();
    shelf.flags |= CATENA_BACKEND_ASYNC;
}
