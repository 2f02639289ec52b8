// expect: load/threads
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "module.h"
static void *wait(void *nothing) {
    pause();
    return nothing;
}
SPOIL {
    pthread_t thread;
    pthread_create(&thread, NULL, wait, NULL);
}
