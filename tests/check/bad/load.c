/* Faults of the entry, of what it leaves behind, and of the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../bad_plugins/module.h"

// good fails: nothing
SPOIL(good) {}

// entry_null fails: load/entry
ENTRY(entry_null) {
    table->fail(ctx, CATENA_E_INTERNAL, "today is no good day");
    return NULL;
}

// entry_allocates fails: faults/load
// The entry does not check the result of the malloc() for its table.
ENTRY(entry_allocates) {
    static catena_plugin *volatile mine;
    host = table;
    if (mine == NULL) {
        mine = malloc(sizeof *mine);
        memcpy(mine, &the_plugin, sizeof *mine);
    }
    return mine;
}

// equal_version fails: skew/new-host
// Accepts only a host whose table has exactly the size that the plugin was built with.
ENTRY(equal_version) {
    host = table;
    if (table->struct_size == sizeof *table) return &the_plugin;
    host->fail(ctx, CATENA_E_INVALID, "[" NAME "] host: expected the same size, got another");
    return NULL;
}

// mute_refusal fails: skew/refusal
// Refuses a host without a message.
ENTRY(mute_refusal) {
    host = table;
    return table->abi_major == CATENA_ABI_MAJOR ? &the_plugin : NULL;
}

static void CATENA_CALL crash(void) { *(volatile int *)0 = 1; }
// end_crashes fails: load/end load/host
SPOIL(end_crashes) { the_plugin.deinit = crash; }

// environment fails: load/environment
SPOIL(environment) { setenv("OMP_NUM_THREADS", "1", 1); }

static void flush_subnormals(unsigned bits) {
#if defined(__x86_64__)
    unsigned mode;
    __asm__ volatile("stmxcsr %0" : "=m"(mode));
    mode |= bits;
    __asm__ volatile("ldmxcsr %0" : : "m"(mode));
#else
    unsigned long mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1ul << 24));
#endif
}
// fast_math fails: load/float-mode
SPOIL(fast_math) { flush_subnormals(0x8040u); /* and denormals are zero */ }
// call_float_mode fails: values/process
// A call leaves the mode that flushes subnormals to zero enabled.
BEFORE(call_float_mode, forward32) { flush_subnormals(0x8000u); }

static void *wait_forever(void *nothing) {
    for (;;) pause();
    return nothing;
}
// own_thread fails: load/threads
SPOIL(own_thread) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_forever, NULL);
}
// call_thread fails: values/process
// The first call starts a thread that never ends.
// says: expected no thread of its own, got 1 more
BEFORE(call_thread, forward64) {
    static int calls;
    pthread_t thread;
    if (calls++ == 0) pthread_create(&thread, NULL, wait_forever, NULL);
}

// prints fails: load/silent
SPOIL(prints) { puts("Welcome to square 1.0!"); }
// call_prints fails: values/process
// Prints in each call; the output is buffered until the process ends.
// says: got: square!
BEFORE(call_prints, forward64) { puts("square!"); }

// leaves_file fails: load/files
SPOIL(leaves_file) { the_plugin.reserved = open("/dev/null", O_RDONLY) < 0; }
// call_file fails: values/process
// Leaks a file descriptor in each call.
// says: expected no new file, got /dev/null
BEFORE(call_file, forward64) { open("/dev/null", O_RDONLY); }

static void quiet(int number) {}
// signal_handler fails: load/signals
// Finds signal() with dlsym(), because static/imports would detect it as an import.
SPOIL(signal_handler) {
    void (*(*set)(int, void (*)(int)))(int);
    *(void **)&set = dlsym(RTLD_DEFAULT, "signal");
    set(SIGUSR1, quiet);
}

// slow fails: load/time
// options: --only load --only static
SPOIL(slow) {
    const clock_t start = clock();
    while (clock() - start < 11 * (CLOCKS_PER_SEC / 2)) {
    }
}
