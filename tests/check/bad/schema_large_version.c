// The largest possible version, which no later version can follow.
// expect: schema/versions load/host
// says: 4294967295
#include "module.h"
SPOIL {
    the_function.version = 0xffffffff;
    for (int i = 0; i < 4; ++i) ((catena_kernel *)the_kernels[i])->version_max = 0xffffffff;
}
