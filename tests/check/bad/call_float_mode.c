// A call leaves the mode that flushes subnormals to zero enabled.
// expect: values/process
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
#if defined(__x86_64__)
    unsigned mode;
    __asm__ volatile("stmxcsr %0" : "=m"(mode));
    mode |= 0x8000u;
    __asm__ volatile("ldmxcsr %0" : : "m"(mode));
#else
    unsigned long mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1ul << 24));
#endif
    return forward_float(ctx, call);
}
SPOIL { forward32.run = spoilt; }
