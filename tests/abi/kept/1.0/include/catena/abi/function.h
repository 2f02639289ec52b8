/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_FUNCTION_H
#define CATENA_ABI_FUNCTION_H
#include "catena/abi/attribute.h"
enum {
    CATENA_PORT_OPTIONAL = 1u,
    CATENA_PORT_VARIADIC = 2u,
    CATENA_PORT_NON_DIFFERENTIABLE = 4u,
    CATENA_PORT_MUTATED = 8u,
    CATENA_PORT_HIDDEN = 16u,
    CATENA_PORT_HOST = 32u
};
typedef struct catena_port_spec {
    uint32_t struct_size;
    uint32_t flags;
    const char *name;
    const char *doc;
    const char *type_var;
} catena_port_spec;
enum {
    CATENA_FUNCTION_STOCHASTIC = 1u,
    CATENA_FUNCTION_VIEW = 2u,
    CATENA_FUNCTION_ELEMENTWISE =
        4u,
    CATENA_FUNCTION_NOT_DIFFERENTIABLE = 8u,
    CATENA_FUNCTION_ADDITION =
        16u,
    CATENA_FUNCTION_INTERNAL = 32u,
    CATENA_FUNCTION_RECOMPUTED = 64u,
    CATENA_FUNCTION_PROMOTES = 128u
};
enum {
    CATENA_MAX_PORTS = 32,
    CATENA_MAX_TYPE_VARS = 4,
    CATENA_MAX_ATTRS = 32
};
#define CATENA_RETAIN_REST ((uint64_t)1 << 63)
typedef struct catena_gradient_call {
    uint32_t struct_size;
    uint32_t flags;
    const catena_function *function;
    const catena_value *attrs;
    uint32_t n_x;
    uint32_t n_y;
    catena_var *const *x;
    catena_var *const *y;
    catena_var *const *gy;
    catena_var **gx;
    const uint64_t *targets;
    const catena_meta *const *x_meta;
} catena_gradient_call;
typedef struct catena_compose_call {
    uint32_t struct_size;
    uint32_t flags;
    const catena_function *function;
    const catena_value *attrs;
    uint32_t n_x;
    uint32_t n_y;
    catena_var *const *x;
    catena_var **y;
} catena_compose_call;
struct catena_function {
    uint32_t struct_size;
    uint32_t flags;
    const char *name;
    const char *doc;
    uint32_t version;
    uint32_t n_attrs;
    uint32_t n_inputs;
    uint32_t n_outputs;
    const catena_attr_spec *const *attrs;
    const catena_port_spec *const *inputs;
    const catena_port_spec *const *outputs;
    uint64_t retain_x;
    uint64_t retain_y;
    catena_status(CATENA_CALL *infer)(catena_ctx *ctx, const catena_value *attrs,
                                      const catena_meta *const *x, uint32_t n_x,
                                      catena_meta *const *y, uint32_t n_y);
    catena_status(CATENA_CALL *gradient)(catena_ctx *ctx, const catena_gradient_call *call);
    const char *grad_function;
    const char *const *examples;
    catena_status(CATENA_CALL *compose)(catena_ctx *ctx, const catena_compose_call *call);
};
#endif
