/* A function: its meaning, independent of devices. Kernels are registered separately. */
#ifndef CATENA_ABI_FUNCTION_H
#define CATENA_ABI_FUNCTION_H

#include "catena/abi/attribute.h"

enum {
    CATENA_PORT_OPTIONAL = 1u,           /* the tensor may be missing: a NULL pointer */
    CATENA_PORT_VARIADIC = 2u,           /* only the last input: one or more tensors */
    CATENA_PORT_NON_DIFFERENTIABLE = 4u, /* labels, indices: never a gradient target */
    CATENA_PORT_MUTATED = 8u,            /* an input that the kernel updates in place */
    CATENA_PORT_HIDDEN = 16u, /* an output kept for the gradient (a mask, a seed); callers do not
                                 see it, and no gradient flows back through it */
    CATENA_PORT_HOST = 32u /* an input whose elements compose() may read: lengths, labels of a path;
                              NON_DIFFERENTIABLE as well */
};

/* An input or an output. Ports with the same type_var have the same dtype. The kernels determine
 * which dtypes are supported. */
typedef struct catena_port_spec {
    uint32_t struct_size;
    uint32_t flags; /* CATENA_PORT_* */
    const char *name;
    const char *doc;
    const char *type_var; /* "T", "I" ... */
} catena_port_spec;

enum {
    CATENA_FUNCTION_STOCHASTIC = 1u, /* draws random numbers */
    CATENA_FUNCTION_VIEW = 2u,       /* y[0] is x[0]'s memory in another shape; no kernel */
    CATENA_FUNCTION_ELEMENTWISE =
        4u, /* NumPy broadcasting of all inputs, then element by element; with MUTATED inputs, no
               broadcasting */
    CATENA_FUNCTION_NOT_DIFFERENTIABLE = 8u, /* outputs have no graph */
    CATENA_FUNCTION_ADDITION =
        16u, /* y = x0 + x1: what the host sums gradients with; one in a host */
    CATENA_FUNCTION_INTERNAL = 32u,   /* for gradients of other functions; not listed by hosts */
    CATENA_FUNCTION_RECOMPUTED = 64u, /* the graph keeps the inputs of compose() and none of its
                                         intermediate results; gradients run it again */
    CATENA_FUNCTION_PROMOTES = 128u   /* the host converts integers and bool to the highest dtype of
                                         the inputs with the same type_var: bool < uint8 < int32 <
                                         int64 < floating */
};

enum {
    CATENA_MAX_PORTS = 32,    /* inputs, or outputs, that a function declares */
    CATENA_MAX_TYPE_VARS = 4, /* different type_vars in one function */
    CATENA_MAX_ATTRS = 32
};
#define CATENA_RETAIN_REST ((uint64_t)1 << 63) /* and every input of the variadic port */

/* A gradient that is composed of host functions. Retained inputs and outputs are passed as
 * variables, others as NULL. gy[i] is NULL if output i has no gradient. Store a result into
 * gx[i] for every i with a set bit in targets (bit i % 64 of word i / 64), or NULL for zero. All
 * variables belong to the host; results of catena_host.call() live until the callback returns. */
typedef struct catena_gradient_call {
    uint32_t struct_size;
    uint32_t flags;                  /* CATENA_CALL_*; as in catena_call */
    const catena_function *function; /* whose gradient it is */
    const catena_value *attrs;       /* one per attribute, in schema order */
    uint32_t n_x;
    uint32_t n_y;
    catena_var *const *x; /* NULL where not retained */
    catena_var *const *y; /* NULL where not retained */
    catena_var *const *gy;
    catena_var **gx;
    const uint64_t *targets;
    const catena_meta *const *x_meta; /* n_x: shapes and dtypes of all inputs, retained or not */
} catena_gradient_call;

/* A forward pass that is composed of host functions. It may depend on shapes, dtypes, attributes,
 * flags, missing inputs, and on the elements of CATENA_PORT_HOST inputs (catena_host.read()), but
 * on no other elements: the host also runs it on variables without memory, to infer shapes. Store
 * a result of catena_host.call() into y[i] for every output; an input is not a result. All
 * variables belong to the host; results of call() live until the callback returns. */
typedef struct catena_compose_call {
    uint32_t struct_size;
    uint32_t flags;                  /* CATENA_CALL_* */
    const catena_function *function; /* whose composition it is */
    const catena_value *attrs;       /* one per attribute, in schema order */
    uint32_t n_x;
    uint32_t n_y;
    catena_var *const *x; /* NULL: a missing optional input */
    catena_var **y;
} catena_compose_call;

/* The description of a function: infer() with kernels, compose(), or both. */
struct catena_function {
    uint32_t struct_size;
    uint32_t flags;   /* CATENA_FUNCTION_* */
    const char *name; /* "catena.relu"; third parties "org.example.swish" */
    const char *doc;  /* Markdown; first line is the summary */
    uint32_t version; /* grows when the meaning changes; starts at 1 */
    uint32_t n_attrs;
    uint32_t n_inputs;
    uint32_t n_outputs;
    /* In the order in which calls pass them. */
    const catena_attr_spec *const *attrs;
    const catena_port_spec *const *inputs;
    const catena_port_spec *const *outputs;

    /* The values of the forward call that backward needs: bit i for port i. The host keeps only
     * these. A kernel with a variant overrides this for its own backward. */
    uint64_t retain_x;
    uint64_t retain_y;

    /* [any] Computes the shape and dtype of y[0 .. n_y) from those of x (entries of missing
     * optional ports are NULL). struct_size is already set, and so is device_type, that of the
     * call's device, which may be kept. No side effects; the result depends only on the
     * arguments. NULL if there is compose(): the host then runs that without computing. */
    catena_status(CATENA_CALL *infer)(catena_ctx *ctx, const catena_value *attrs,
                                      const catena_meta *const *x, uint32_t n_x,
                                      catena_meta *const *y, uint32_t n_y);

    /* [compute] The gradient, for any order; NULL if there is only a backward kernel (first
     * order). */
    catena_status(CATENA_CALL *gradient)(catena_ctx *ctx, const catena_gradient_call *call);

    /* Or the name of a function that is the gradient: its inputs are the retained x, the
     * retained y, then all gy, with this function's attributes; its outputs are gx for every
     * differentiable input. NULL if there is none. At most one of gradient and grad_function is
     * set. */
    const char *grad_function;

    /* Valid calls, for documentation and generated tests: a NULL-terminated list, or NULL. A
     * call is a list of NAME=VALUE, separated by spaces: "x=(2,3)[0.5,2] W=(4,3) axis=1
     * mode=\"full\"". For an input, the value is its shape and optionally a range; the default
     * range is [-1, 1], and 0 and 1 for integers. For an integer input, it may be a list of its
     * elements instead: lengths=[3,2,2]. A variadic input occurs once for each tensor; an omitted
     * optional input is missing. For an attribute, the value is JSON without spaces. */
    const char *const *examples;

    /* [compute] The forward pass as calls of host functions; NULL if there are only kernels. The
     * host uses a kernel if one supports the call; the composition defines what it computes. If
     * there is neither gradient nor grad_function, gradients are those of the composition.
     * Must not lead to the function itself. */
    catena_status(CATENA_CALL *compose)(catena_ctx *ctx, const catena_compose_call *call);
};

#endif
