/* Faults of compositions. */
#include <stdlib.h>
#include <string.h>

#include "../../bad_plugins/module.h"

#define COMPOSE(name) \
    static catena_status CATENA_CALL name(catena_ctx *ctx, const catena_compose_call *call)

static void make_composition(catena_status(CATENA_CALL *compose)(catena_ctx *,
                                                                 const catena_compose_call *)) {
    the_function.infer = NULL;
    the_function.retain_x = 0;
    the_function.compose = compose;
    the_plugin.n_kernels = 0;
}
/* A row with a composition in place of the kernels. */
#define COMPOSES(name)                                \
    COMPOSE(compose_##name);                          \
    SPOIL(name) { make_composition(compose_##name); } \
    COMPOSE(compose_##name)
/* Whether the second copy of the plugin runs, with catena-check's own host. */
static int is_examined(void) { return strcmp(host->name, "catena-check") == 0; }

/* y = scale x^2 */
COMPOSE(square) {
    catena_var *squared;
    const catena_status status = call_of(ctx, "catena.mul", NULL, call->x[0], call->x[0], &squared);
    if (status != CATENA_OK) return status;
    return call_of(ctx, "catena.mul_constant", &SCALE, squared, NULL, &call->y[0]);
}

// good_composition fails: nothing
// skips: compose/shapes
// passes: compose/pure compose/host gradients/composed gradients/second-order inference/overflow
COMPOSES(good_composition) { return square(ctx, call); }

// good_infers fails: nothing
// passes: compose/shapes values/reached gradients/kernel
SPOIL(good_infers) { the_function.compose = square; }

// compose_impure fails: compose/pure
// Multiplies by the scale first in every other call.
// says: expected the same calls, got "#1 = catena.mul
COMPOSES(compose_impure) {
    static int n;
    catena_var *scaled;
    if (n++ % 2 == 0) return square(ctx, call);
    const catena_status status =
        call_of(ctx, "catena.mul_constant", &SCALE, call->x[0], NULL, &scaled);
    if (status != CATENA_OK) return status;
    return call_of(ctx, "catena.mul", NULL, scaled, call->x[0], &call->y[0]);
}

// compose_reads fails: compose/host
// Tries to read an input that is not HOST.
// options: --only compose
// says: compose() and the host: it calls read() for a variable that is no HOST input of compose()
COMPOSES(compose_reads) {
    const void *elements;
    if (is_examined()) host->read(ctx, call->x[0], &elements);
    return square(ctx, call);
}

// compose_pointer fails: compose/host compose/pure
// Takes a variable for a pointer to numbers.
// options: --only compose
// says: it crashed: SIGSEGV
COMPOSES(compose_pointer) {
    const volatile float *x = (const volatile float *)call->x[0];
    if (is_examined() && x[0] == 0) return CATENA_OK;
    return square(ctx, call);
}

// compose_leaks fails: faults/leak
// says: bytes more with each call: memory that nobody frees
COMPOSES(compose_leaks) {
    char *volatile name = malloc(40);
    if (name == NULL) return host->fail(ctx, CATENA_E_NOMEM, "[" NAME "] out of memory");
    memset(name, 0, 40);
    return square(ctx, call);
}

// compose_input fails: values/examples
// The result is an input.
// options: --only values --only compose
// says: [org.example.square] compose: y: expected a result of one of its calls, got another variable
COMPOSES(compose_input) {
    call->y[0] = call->x[0];
    return CATENA_OK;
}

// compose_nothing fails: values/examples
// options: --only values --only compose
// says: [org.example.square] compose: y: expected a result of one of its calls, got none
COMPOSES(compose_nothing) { return CATENA_OK; }

// compose_earlier fails: compose/host
// The result is that of an earlier callback.
// options: --only compose/host
// says: compose() and the host: y: expected a result of one of its calls, got another variable
COMPOSES(compose_earlier) {
    static catena_var *kept;
    const catena_status status = square(ctx, call);
    if (kept == NULL) kept = call->y[0];
    if (is_examined()) call->y[0] = kept;
    return status;
}

// compose_argument fails: compose/host
// Passes a variable of an earlier callback to a call.
// options: --only compose/host
// says: it passes a variable to call() that is not of this callback
COMPOSES(compose_argument) {
    static catena_var *kept;
    if (kept == NULL || !is_examined()) kept = call->x[0];
    return call_of(ctx, "catena.mul", NULL, kept, call->x[0], &call->y[0]);
}

// compose_context fails: compose/host
// Uses the context of an earlier callback.
// options: --only compose/host
// says: compose() and the host: it calls config() with a context that is not of this callback
COMPOSES(compose_context) {
    static catena_ctx *kept;
    if (kept == NULL) kept = ctx;
    host->config(kept, "train", 0);
    return square(ctx, call);
}

// call_in_infer fails: faults/host-call
// options: --only faults/host-call
// says: infer() and the host: it calls call() outside gradient() and compose()
INFERS(call_in_infer) {
    const catena_callable *callable;
    if (is_examined() && host->find(ctx, "catena.mul", &callable) == CATENA_OK)
        host->call(ctx, callable, NULL, 0, NULL, 0, NULL, 0);
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}

// compose_recursion fails: values/examples
// says: expected calls that do not lead back to it, got org.example.square > org.example.square
COMPOSES(compose_recursion) {
    return call_of(ctx, "org.example.square", NULL, call->x[0], NULL, &call->y[0]);
}

COMPOSE(there) { return call_of(ctx, "org.example.back", NULL, call->x[0], NULL, &call->y[0]); }
COMPOSE(back) { return call_of(ctx, "org.example.square", NULL, call->x[0], NULL, &call->y[0]); }
// compose_detour fails: values/examples
// Two compositions call each other.
// says: expected calls that do not lead back to it, got org.example.
SPOIL(compose_detour) {
    static catena_function other;
    make_composition(there);
    other = the_function;
    other.name = "org.example.back";
    other.compose = back;
    the_functions[the_plugin.n_functions++] = &other;
}

INFER(infer_flat) {
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    if (x[0]->ndim > 1) y[0]->ndim = 1;
    return status;
}
// compose_shapes fails: compose/shapes
// infer() gives one axis, and compose() as many as there are.
// options: --only compose
SPOIL(compose_shapes) {
    the_function.compose = square;
    the_function.infer = infer_flat;
}

// compose_ignores fails: faults/host-call
// Returns CATENA_OK although a call failed.
// options: --only faults
// says: failing call of the host 1: compose() and the host: y: expected a result of one of its calls
COMPOSES(compose_ignores) {
    catena_var *squared = NULL;
    if (call_of(ctx, "catena.mul", NULL, call->x[0], call->x[0], &squared) != CATENA_OK)
        return CATENA_OK;
    return call_of(ctx, "catena.mul_constant", &SCALE, squared, NULL, &call->y[0]);
}
