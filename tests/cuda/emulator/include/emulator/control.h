/* The emulator's interface for tests, in addition to CUDA's. The functions are weak: in a program with
 * NVIDIA's runtime their addresses are null. */
#pragma once

#define CATENA_EMULATOR_API __attribute__((visibility("default"), weak))

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a device fail, as after a kernel's fault: later calls return error, a cudaError_t, until
 * cudaDeviceReset(). */
CATENA_EMULATOR_API void catena_emulator_fault(int device, int error);

/* Returns a bit for each device on which this process has a context. forget != 0: clears the bits,
 * so that a test sees which calls create a context. */
CATENA_EMULATOR_API unsigned catena_emulator_contexts(int forget);

/* Makes a context of another library on the device current in this thread: calls that need the
 * runtime's context fail. leave() pops it and returns whether it was still the current one. */
CATENA_EMULATOR_API void catena_emulator_foreign(int device);
CATENA_EMULATOR_API int catena_emulator_leave(void);

/* Makes the thread's call with this number, counted from 0 from now on, fail with error and do
 * nothing; number < 0: none. Returns how many calls there were since the previous request. Calls
 * that free or destroy something do not count, because CUDA performs them whatever they return. */
CATENA_EMULATOR_API int catena_emulator_fail(int number, int error);

/* Adds change to the number of existing streams, events, graphs, memory blocks, loaded libraries
 * and vendors' handles, and returns that number. */
CATENA_EMULATOR_API long catena_emulator_live(long change);

/* Returns why the device failed last, or "" if none has. The text is valid until the next fault. */
CATENA_EMULATOR_API const char* catena_emulator_last_fault(void);

/* Names the kernel, the instruction and the thread that wrote an element of device memory last. The
 * text is valid until the thread's next call. */
CATENA_EMULATOR_API const char* catena_emulator_writer(const void* data);

/* Returns the PTX of the module that this process loaded as number i; NULL: there is none. */
CATENA_EMULATOR_API const char* catena_emulator_ptx(int i);

#ifdef __cplusplus
}

/* Whether the program runs on the emulator. */
inline const bool emulated = catena_emulator_live != nullptr;
#endif
