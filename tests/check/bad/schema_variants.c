// A forward kernel of a variant that has no backward kernel.
// expect: schema/variants
#include "module.h"
static catena_kernel lonely = KERNEL(CATENA_PHASE_FORWARD, float32, forward_float);
SPOIL {
    lonely.variant = "fused";
    lonely.priority = CATENA_PRIORITY_REFERENCE;
    lonely.retain_x = 1;
    the_kernels[4] = &lonely;
    the_plugin.n_kernels = 5;
}
