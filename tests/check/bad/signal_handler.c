// Finds signal() with dlsym(), because static/imports would detect it as an import.
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
