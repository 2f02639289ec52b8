// expect: schema/table
// says: dlpack_type: expected a DLDeviceType, such as 12 (kDLExtDev), got 999
#include "backend.h"
SPOIL {
    make_backend();
    shelf.dlpack_type = 999;
}
