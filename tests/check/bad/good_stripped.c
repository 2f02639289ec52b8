// expect: nothing
// link: -s
// The question for AVX2 brings a constructor of libgcc's, here without its name.
#include "module.h"
SPOIL {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) forward32.priority += 1;
#endif
}
