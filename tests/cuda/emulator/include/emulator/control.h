/* The emulator's interface for tests, in addition to CUDA's. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a device fail, as after a kernel's fault: later calls return error, a cudaError_t, until
 * cudaDeviceReset(). */
__attribute__((visibility("default"))) void catena_emulator_fault(int device, int error);

/* Returns a bit for each device on which this process has a context. forget != 0: clears the bits,
 * so that a test sees which calls create a context. */
__attribute__((visibility("default"))) unsigned catena_emulator_contexts(int forget);

/* Makes a context of another library on the device current in this thread: calls that need the
 * runtime's context fail. leave() pops it and returns whether it was still the current one. */
__attribute__((visibility("default"))) void catena_emulator_foreign(int device);
__attribute__((visibility("default"))) int catena_emulator_leave(void);

/* Makes the thread's call with this number, counted from 0 from now on, fail with error and do
 * nothing; number < 0: none. Returns how many calls there were since the previous request. Calls
 * that free or destroy something do not count, because CUDA performs them whatever they return. */
__attribute__((visibility("default"))) int catena_emulator_fail(int number, int error);

/* Adds change to the number of existing streams, events, graphs, memory blocks, loaded libraries
 * and vendors' handles, and returns that number. */
__attribute__((visibility("default"))) long catena_emulator_live(long change);

#ifdef __cplusplus
}
#endif
