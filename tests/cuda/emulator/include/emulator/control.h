/* What tests ask of the emulator beyond CUDA's interface. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* A device fails for good, as after a kernel's fault: error is the cudaError_t of all that follows.
 * cudaDeviceReset() heals it. */
__attribute__((visibility("default"))) void catena_emulator_fault(int device, int error);

/* Devices on which this process has a context, as bits; forget: from now on it has none, so that a
 * test sees who makes one. */
__attribute__((visibility("default"))) unsigned catena_emulator_contexts(int forget);

/* Another library made a context of its own on the device the thread's current one: calls that need
 * the runtime's fail there. leave() undoes it, and returns whether it was still so. */
__attribute__((visibility("default"))) void catena_emulator_foreign(int device);
__attribute__((visibility("default"))) int catena_emulator_leave(void);

/* Of this thread's calls from now on, the one with that number, from 0 on, fails with that error and
 * does nothing. Returns how many calls there were since this was asked last. Calls that free or destroy
 * something do not count: CUDA does what they say, whatever they return. number < 0: none fails. */
__attribute__((visibility("default"))) int catena_emulator_fail(int number, int error);

/* Streams, events, graphs, blocks of memory, loaded code and vendors' handles that there are, after so
 * many more. */
__attribute__((visibility("default"))) long catena_emulator_live(long change);

#ifdef __cplusplus
}
#endif
