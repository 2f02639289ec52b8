/* What tests ask of the emulator beyond CUDA's interface. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* A device fails for good, as after a kernel's fault: error is the cudaError_t of all that follows.
 * cudaDeviceReset() heals it. */
__attribute__((visibility("default"))) void catena_emulator_fault(int device, int error);

#ifdef __cplusplus
}
#endif
