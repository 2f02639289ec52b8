/* A host for catena's plugins, small enough to read: it loads them, and calls their functions on host
 * memory, forward and backward, on one thread. Nothing of catena but the ABI's headers.
 *
 *     minihost_load("swish.catena", NULL);
 *     minihost_call *c = minihost_begin("org.example.swish", NULL, 0);
 *     float *x = minihost_floats(&c->x[0], 2, (const int64_t[]){2, 3});
 *     ...fill x...
 *     if (minihost_forward(c) != CATENA_OK) puts(minihost_error());
 *     minihost_end(c);
 *
 * cc -std=c99 -I PREFIX/include main.c minihost.c call.c -ldl
 * minihost.c is the table that plugins see, call.c how a function is called, main.c a program. */
#ifndef CATENA_MINIHOST_H
#define CATENA_MINIHOST_H

#include <catena/abi.h>

#ifndef MINIHOST_MINOR
#define MINIHOST_MINOR CATENA_ABI_MINOR /* that it says it has */
#endif

/* Dense, row-major. Without data: missing. */
typedef struct minihost_array {
    catena_meta meta;
    int64_t strides[CATENA_MAX_NDIM];
    void *data;
} minihost_array;

/* A call of a function. The caller fills x, and gy for backward; the rest is the host's. */
typedef struct minihost_call {
    const catena_function *function;
    const catena_kernel *kernel; /* that ran forward */
    const catena_plugin *plugin; /* that has it */
    catena_value attrs[CATENA_MAX_ATTRS];
    uint32_t n_x; /* at least the function's inputs; more for a variadic one */
    uint32_t n_y;
    minihost_array x[CATENA_MAX_PORTS];
    minihost_array y[CATENA_MAX_PORTS];
    minihost_array gy[CATENA_MAX_PORTS];
    minihost_array gx[CATENA_MAX_PORTS];
    minihost_array saved[CATENA_MAX_PORTS];
} minihost_call;

/* What plugins get. With another table for load(), they can be shown an older host: copy_table() makes
 * one of struct_size bytes, at `to`. */
const catena_host *minihost_table(void);
void minihost_copy_table(void *to, uint32_t struct_size);

/* The plugin's table, or NULL. host: NULL is minihost_table(). */
const catena_plugin *minihost_load(const char *path, const catena_host *host);
/* What failed last. */
const char *minihost_error(void);
/* The function of that name, or NULL; the n-th of all that were loaded. */
const catena_function *minihost_function(const char *name);
const catena_function *minihost_function_at(uint32_t n);

/* NULL if there is no such function, or an attribute is refused. */
minihost_call *minihost_begin(const char *function, const catena_named_value *attrs,
                              uint32_t n_attrs);
/* Memory for an array, uninitialised; what it had is freed. */
void *minihost_allocate(minihost_array *array, const catena_meta *meta);
float *minihost_floats(minihost_array *array, int32_t ndim, const int64_t *shape);
int64_t minihost_size(const minihost_array *array);
size_t minihost_bytes(const minihost_array *array);
/* Shapes and dtypes of y; no memory. */
catena_status minihost_infer(minihost_call *call);
catena_status minihost_forward(minihost_call *call);
/* gx of every differentiable float input: by the backward kernel if there is one, else composed. */
catena_status minihost_backward(minihost_call *call);
/* The same as the function composes it of other functions, whose plugins have to be loaded. */
catena_status minihost_compose(minihost_call *call);
void minihost_end(minihost_call *call);

#endif
