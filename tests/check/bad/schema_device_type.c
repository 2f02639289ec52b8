// expect: schema/table
// says: dlpack_type: expected a DLDeviceType, 1 to 18, got 999
#include "backend.h"
SPOIL {
    make_backend();
    shelf.dlpack_type = 999;
}
