// Has only kernels for a device that does not exist; the checks of kernels are skipped.
// expect: nothing
// skips: values/dtypes gradients/kernel faults/allocation faults/pieces skew/new-host fuzz/shapes
#define OWN_MANIFEST
#include "module.h"
MANIFEST("org.example.bad", "1.0.0", "nowhere")
SPOIL {
    catena_kernel *const kernels[] = {&forward32, &forward64};
    for (int i = 0; i < 2; ++i) {
        kernels[i]->function = "catena.relu";
        kernels[i]->device = "nowhere";
    }
    the_plugin.n_functions = 0;
    the_plugin.n_kernels = 2;
}
