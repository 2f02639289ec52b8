// expect: schema/kernels
#include "module.h"
static const catena_dtype twice[] = {{CATENA_CODE_FLOAT, 32, 1}, {CATENA_CODE_FLOAT, 32, 1}};
SPOIL {
    forward32.types = twice;
    forward32.n_types = 2;
}
