// Through the kernel: static/imports would see sigaction().
// expect: load/signals
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>

#include "module.h"
static void quiet(int number) { (void)number; }
SPOIL {
    void (*(*set)(int, void (*)(int)))(int);
    *(void **)&set = dlsym(RTLD_DEFAULT, "signal");
    set(SIGUSR1, quiet);
}
