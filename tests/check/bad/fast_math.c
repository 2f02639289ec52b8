// expect: load/float-mode
#include "module.h"
SPOIL {
#if defined(__x86_64__)
    unsigned mode;
    __asm__ volatile("stmxcsr %0" : "=m"(mode));
    mode |= 0x8040u; /* flush to zero, denormals are zero */
    __asm__ volatile("ldmxcsr %0" : : "m"(mode));
#else
    unsigned long mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1ul << 24));
#endif
}
