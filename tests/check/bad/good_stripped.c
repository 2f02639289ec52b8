// expect: nothing
// link: -s
// The query for AVX2 links a constructor of libgcc, whose name is stripped here.
#include "module.h"
SPOIL {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) forward32.priority += 1;
#endif
}
