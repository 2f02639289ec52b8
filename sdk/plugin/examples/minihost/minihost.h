/* A small host for catena's plugins: loads them, and calls their functions on host memory, forward and
 * backward, on one thread. It needs no part of catena except the ABI's headers.
 *
 *     minihost_load("swish.catena", NULL);
 *     minihost_call *c = minihost_begin("org.example.swish", NULL, 0);
 *     float *x = minihost_floats(&c->x[0], 2, (const int64_t[]){2, 3});
 *     ...fill x...
 *     if (minihost_forward(c) != CATENA_OK) puts(minihost_error());
 *     minihost_end(c);
 *
 * cc -std=c99 -I PREFIX/include main.c minihost.c -ldl */
#ifndef CATENA_MINIHOST_H
#define CATENA_MINIHOST_H

#include <catena/abi.h>

#ifndef MINIHOST_MINOR
#define MINIHOST_MINOR CATENA_ABI_MINOR /* the minor version that the host reports */
#endif

/* A dense, row-major array. data is NULL if the array is missing. */
typedef struct minihost_array {
    catena_meta meta;
    int64_t strides[CATENA_MAX_NDIM];
    void *data;
} minihost_array;

/* A result within a gradient; it lives until the callback returns. */
struct catena_var {
    minihost_array array;
    catena_var *next;
};

/* A call of a function. The caller fills x, and gy for backward; the host fills the rest. */
typedef struct minihost_call {
    const catena_function *function;
    const catena_kernel *kernel; /* the kernel that ran forward */
    const catena_plugin *plugin; /* the plugin of the kernel */
    catena_value attrs[CATENA_MAX_ATTRS];
    uint32_t n_x; /* at least the function's inputs; more for a variadic one */
    uint32_t n_y;
    minihost_array x[CATENA_MAX_PORTS], y[CATENA_MAX_PORTS];
    minihost_array gx[CATENA_MAX_PORTS], gy[CATENA_MAX_PORTS];
    minihost_array saved[CATENA_MAX_PORTS];
} minihost_call;

/* Returns the host table that plugins get. */
const catena_host *minihost_table(void);
/* Loads a plugin and returns its table, or NULL. host: NULL means minihost_table(). */
const catena_plugin *minihost_load(const char *path, const catena_host *host);
/* Returns the text of the last error. */
const char *minihost_error(void);
/* Returns a function of the loaded plugins, or NULL. */
const catena_function *minihost_function(const char *name);
/* Returns the port of the i-th input of a call: the last one repeats if it is variadic. */
const catena_port_spec *minihost_port(const catena_function *function, uint32_t i);

/* Begins a call. Returns NULL if there is no such function, or an attribute is refused. */
minihost_call *minihost_begin(const char *function, const catena_named_value *attrs,
                              uint32_t n_attrs);
/* Allocates uninitialised memory for an array, and frees its old memory. */
void *minihost_allocate(minihost_array *array, const catena_meta *meta);
float *minihost_floats(minihost_array *array, int32_t ndim, const int64_t *shape);
int64_t minihost_size(const minihost_array *array);
catena_status minihost_forward(minihost_call *call);
/* Computes gx of each differentiable float input, by a backward kernel or else by composition. */
catena_status minihost_backward(minihost_call *call);
/* Computes the same gradients from other functions, whose plugins must be loaded. */
catena_status minihost_compose(minihost_call *call);
void minihost_end(minihost_call *call);

#endif
