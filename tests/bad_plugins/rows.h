/* A function NAME with a kernel that claims N_TYPES rows of dtypes. A module defines both. */
#ifndef ROWS_H
#define ROWS_H

static const catena_function function = FUNCTION(NAME);
static const catena_function *const functions[] = {&function};
static const catena_dtype float32 = {CATENA_CODE_FLOAT, 32, 1};
static catena_kernel kernel = KERNEL(NAME, run, 0, NULL);
static const catena_kernel *const kernels[] = {&kernel};

ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 1, 0, 0, 0, functions, kernels, NULL, NULL, NULL, NULL};
    (void)host, (void)ctx;
    kernel.types = &float32;
    kernel.n_types = N_TYPES;
    return &table;
}

#endif
