// A constructor in addition to libgcc's, in a file without symbol names.
// expect: static/constructors
// link: -s
// says: expected none, got 1
#include "module.h"
static int count;
__attribute__((constructor)) static void work(void) { ++count; }
SPOIL {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) forward32.priority += 1;
#endif
}
