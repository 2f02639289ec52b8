/* Declarations that minihost.c and call.c share. */
#ifndef CATENA_MINIHOST_INTERNAL_H
#define CATENA_MINIHOST_INTERNAL_H

#include "minihost.h"

/* A call in progress. Variables live until the gradient callback returns. */
struct catena_ctx {
    const char *device; /* "" while a plugin is loaded */
    int in_gradient;
    catena_var *vars;
};
struct catena_var {
    minihost_array array;
    catena_var *next;
};
struct catena_callable {
    const catena_function *function;
    catena_callable *next;
};

enum { MINIHOST_MAX_PLUGINS = 64 };
extern const catena_plugin *minihost_plugins[MINIHOST_MAX_PLUGINS];
extern uint32_t minihost_n_plugins;

/* fail() keeps the text if it is the call's first and returns status; begin_call() clears it. */
catena_status minihost_fail(catena_status status, const char *format, ...);
void minihost_begin_call(void);

#endif
