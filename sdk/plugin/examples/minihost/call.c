/* Calls functions: binds attributes, infers shapes, runs kernels, computes gradients. */
#define _POSIX_C_SOURCE 200112L
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static void release(minihost_array *arrays, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) free(arrays[i].data), arrays[i].data = NULL;
}
/* Sets list[i] to a tensor of array i if the array has data and i is in the set, else to NULL. */
static void lend(catena_tensor *tensors, catena_tensor **list, minihost_array *arrays, uint32_t n,
                 uint64_t set, uint32_t flags) {
    for (uint32_t i = 0; i < n; ++i) {
        minihost_array *a = &arrays[i];
        list[i] = a->data != NULL && (set >> i & 1) != 0 ? &tensors[i] : NULL;
        tensors[i] = (catena_tensor){
            .struct_size = sizeof *tensors,
            .flags = CATENA_TENSOR_CONTIGUOUS | flags,
            .dl = {a->data, 1, 0, a->meta.ndim, a->meta.dtype, a->meta.shape, a->strides, 0},
            .nbytes = minihost_bytes(a),
            .align_log2 = 6};
    }
}

static int refused(const catena_attr_spec *s, const catena_value *v) {
    if (v->kind != s->kind) return 1;
    if (v->kind == CATENA_ATTR_BOOL && v->v.i != 0 && v->v.i != 1) return 1;
    if (v->kind == CATENA_ATTR_STRING && s->choices != NULL) {
        const char *const *choice = s->choices;
        while (*choice != NULL && strcmp(*choice, v->v.s) != 0) ++choice;
        return *choice == NULL;
    }
    if ((s->flags & CATENA_ATTR_RANGED) == 0) return 0;
    for (uint32_t i = 0; i < v->n; ++i)
        if (v->kind == CATENA_ATTR_FLOAT || v->kind == CATENA_ATTR_FLOATS) {
            const double x = v->kind == CATENA_ATTR_FLOAT ? v->v.f : v->v.floats[i];
            if (!(s->lo.v.f <= x && x <= s->hi.v.f)) return 1;
        } else {
            const int64_t x = v->kind == CATENA_ATTR_INTS ? v->v.ints[i] : v->v.i;
            if (x < s->lo.v.i || x > s->hi.v.i) return 1;
        }
    return 0;
}
/* Fills values in the order of the schema, from attrs or defaults. */
static catena_status bind(const catena_function *f, const catena_named_value *attrs,
                          uint32_t n_attrs, catena_value *values) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < f->n_attrs; ++i) {
        const catena_attr_spec *s = f->attrs[i];
        uint32_t at = 0;
        while (at < n_attrs && strcmp(attrs[at].name, s->name) != 0) ++at;
        if (at < n_attrs) ++used;
        values[i] = at < n_attrs ? attrs[at].value : s->def;
        if (at < n_attrs ? refused(s, &values[i]) : (s->flags & CATENA_ATTR_REQUIRED) != 0)
            return minihost_fail(
                CATENA_E_INVALID,
                "[%s] attribute '%s': expected a value of its kind, range and choices, "
                "got %s",
                f->name, s->name, at < n_attrs ? "another" : "none");
    }
    if (used == n_attrs) return CATENA_OK;
    for (uint32_t i = 0; i < n_attrs; ++i) {
        uint32_t before = 0, at = 0;
        while (strcmp(attrs[before].name, attrs[i].name) != 0) ++before;
        while (at < f->n_attrs && strcmp(f->attrs[at]->name, attrs[i].name) != 0) ++at;
        if (before < i || at == f->n_attrs)
            return minihost_fail(CATENA_E_INVALID, "[%s] attribute '%s': expected %s, got %s",
                                 f->name, attrs[i].name,
                                 before < i ? "once" : "a name of the function's",
                                 before < i ? "twice" : "another");
    }
    return CATENA_OK;
}
minihost_call *minihost_begin(const char *name, const catena_named_value *attrs, uint32_t n_attrs) {
    minihost_begin_call();
    const catena_function *f = minihost_function(name);
    if (f == NULL)
        return minihost_fail(CATENA_E_INVALID, "no plugin has the function %s", name), NULL;
    minihost_call *c = calloc(1, sizeof *c);
    if (c == NULL) return minihost_fail(CATENA_E_NOMEM, "out of memory"), NULL;
    c->function = f;
    c->n_x = f->n_inputs;
    c->n_y = f->n_outputs;
    if (bind(f, attrs, n_attrs, c->attrs) == CATENA_OK) return c;
    free(c);
    return NULL;
}
void minihost_end(minihost_call *c) {
    minihost_array *lists[] = {c->x, c->y, c->gy, c->gx, c->saved};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) release(lists[i], CATENA_MAX_PORTS);
    free(c);
}

/* Returns the port of the i-th array: the last port repeats if it is variadic. */
static const catena_port_spec *port_of(const catena_function *f, uint32_t i) {
    return f->inputs[i < f->n_inputs ? i : f->n_inputs - 1];
}
catena_status minihost_infer(minihost_call *c) {
    const catena_function *f = c->function;
    const catena_meta *x[CATENA_MAX_PORTS];
    catena_meta *y[CATENA_MAX_PORTS];
    catena_ctx ctx = {"cpu", 0, NULL};
    if (c->n_x > f->n_inputs &&
        (f->n_inputs == 0 || (port_of(f, c->n_x)->flags & CATENA_PORT_VARIADIC) == 0))
        return minihost_fail(CATENA_E_INVALID, "[%s] inputs: expected %u, got %u", f->name,
                             (unsigned)f->n_inputs, (unsigned)c->n_x);
    for (uint32_t i = 0; i < c->n_x; ++i) {
        x[i] = c->x[i].data == NULL ? NULL : &c->x[i].meta;
        if (x[i] == NULL && (port_of(f, i)->flags & CATENA_PORT_OPTIONAL) == 0)
            return minihost_fail(CATENA_E_INVALID, "[%s] %s: expected an array, got none", f->name,
                                 port_of(f, i)->name);
    }
    for (uint32_t i = 0; i < c->n_y; ++i) {
        c->y[i].meta.struct_size = sizeof(catena_meta);
        c->y[i].meta.device_type = 1; /* the CPU, if the function has no inputs to infer it from */
        y[i] = &c->y[i].meta;
    }
    return f->infer(&ctx, c->attrs, x, c->n_x, y, c->n_y);
}

/* Whether a row of a kernel's dtypes (one for each type variable, in order of first use) matches
 * the dtypes of the call's arrays. */
static int fits(const minihost_call *c, const catena_dtype *row, const char **vars, uint32_t n) {
    for (uint32_t i = 0; i < c->n_x + c->n_y; ++i) {
        const minihost_array *a = i < c->n_x ? &c->x[i] : &c->y[i - c->n_x];
        const char *var = i < c->n_x ? port_of(c->function, i)->type_var
                                     : c->function->outputs[i - c->n_x]->type_var;
        uint32_t v = 0;
        while (v < n && strcmp(vars[v], var) != 0) ++v;
        if (i < c->n_x && a->data == NULL) continue;
        if (memcmp(&row[v], &a->meta.dtype, sizeof *row) != 0) return 0;
    }
    return 1;
}
static int serves(const minihost_call *c, const catena_kernel *k) {
    const catena_function *f = c->function;
    const char *vars[CATENA_MAX_TYPE_VARS];
    uint32_t n = 0;
    if (strcmp(k->function, f->name) != 0 || strcmp(k->device, "cpu") != 0 || *k->isa != '\0' ||
        f->version < k->version_min || f->version > k->version_max || k->n_saved > CATENA_MAX_PORTS)
        return 0;
    for (uint32_t i = 0; i < f->n_inputs + f->n_outputs; ++i) {
        const char *var =
            i < f->n_inputs ? f->inputs[i]->type_var : f->outputs[i - f->n_inputs]->type_var;
        uint32_t v = 0;
        while (v < n && strcmp(vars[v], var) != 0) ++v;
        if (v == n && n < CATENA_MAX_TYPE_VARS) vars[n++] = var;
    }
    for (uint32_t r = 0; r < k->n_types; ++r)
        if (fits(c, k->types + r * n, vars, n)) return 1;
    return 0;
}

/* Runs a kernel. CATENA_E_UNSUPPORTED means that another kernel may support the call. */
static catena_status run(minihost_call *c, const catena_kernel *k) {
    struct {
        catena_tensor tensors[5][CATENA_MAX_PORTS];
        catena_tensor *x[CATENA_MAX_PORTS], *y[CATENA_MAX_PORTS], *gy[CATENA_MAX_PORTS],
            *gx[CATENA_MAX_PORTS], *saved[CATENA_MAX_PORTS];
        catena_meta metas[CATENA_MAX_PORTS], *meta_list[CATENA_MAX_PORTS];
    } *t = calloc(1, sizeof *t);
    if (t == NULL) return minihost_fail(CATENA_E_NOMEM, "out of memory");
    const int backward = k->phase == CATENA_PHASE_BACKWARD;
    const uint64_t all = ~(uint64_t)0;
    const uint64_t keep_x = k->variant != NULL ? k->retain_x : c->function->retain_x;
    const uint64_t keep_y = k->variant != NULL ? k->retain_y : c->function->retain_y;
    const uint64_t rest = (keep_x & CATENA_RETAIN_REST) == 0 || c->function->n_inputs == 0
                              ? 0
                              : all << (c->function->n_inputs - 1);
    uint8_t req[CATENA_MAX_PORTS] = {0};
    uint64_t targets = 0;
    lend(t->tensors[0], t->x, c->x, c->n_x, backward ? keep_x | rest : all, CATENA_TENSOR_READONLY);
    lend(t->tensors[1], t->y, c->y, c->n_y, backward ? keep_y : all,
         backward ? +CATENA_TENSOR_READONLY : 0u);
    lend(t->tensors[2], t->gy, c->gy, c->n_y, all, CATENA_TENSOR_READONLY);
    lend(t->tensors[3], t->gx, c->gx, c->n_x, all, 0);
    for (uint32_t i = 0; i < c->n_x; ++i)
        if (!backward && (port_of(c->function, i)->flags & CATENA_PORT_MUTATED) != 0)
            t->tensors[0][i].flags &= ~(uint32_t)CATENA_TENSOR_READONLY;
    for (uint32_t i = 0; i < (backward ? c->n_x : c->n_y); ++i) {
        if (backward && c->gx[i].data == NULL) continue;
        req[i] = CATENA_REQ_WRITE;
        if (backward) targets |= (uint64_t)1 << i;
    }
    catena_call call = {.struct_size = sizeof call,
                        .flags = CATENA_CALL_TRAIN,
                        .phase = k->phase,
                        .n_saved = k->n_saved,
                        .function = c->function,
                        .attrs = c->attrs,
                        .n_x = c->n_x,
                        .n_y = c->n_y,
                        .x = (const catena_tensor *const *)t->x,
                        .y = t->y,
                        .gy = (const catena_tensor *const *)t->gy,
                        .gx = t->gx,
                        .saved = t->saved,
                        .req = req,
                        .targets = &targets};
    catena_plan plan = {.struct_size = sizeof plan, .n_saved = k->n_saved, .saved = t->meta_list};
    catena_ctx ctx = {"cpu", 0, NULL};
    catena_status status = CATENA_OK;
    for (uint32_t i = 0; i < k->n_saved; ++i) {
        t->metas[i].struct_size = sizeof *t->metas;
        t->meta_list[i] = &t->metas[i];
    }
    if (k->supports != NULL && k->supports(&ctx, &call) == 0) status = CATENA_E_UNSUPPORTED;
    else if (k->plan != NULL) status = k->plan(&ctx, &call, &plan);
    for (uint32_t i = 0; status == CATENA_OK && !backward && i < k->n_saved; ++i)
        if (minihost_allocate(&c->saved[i], &t->metas[i]) == NULL)
            status = minihost_fail(CATENA_E_NOMEM, "out of memory");
    lend(t->tensors[4], t->saved, c->saved, k->n_saved, all, 0);
    void *scratch = NULL;
    if (status == CATENA_OK && plan.scratch_bytes > 0 &&
        posix_memalign(&scratch, 64, plan.scratch_bytes) != 0)
        status = minihost_fail(CATENA_E_NOMEM, "out of memory");
    call.scratch = scratch;
    call.scratch_bytes = plan.scratch_bytes;
    if (status == CATENA_OK) {
        status = k->run(&ctx, &call);
        /* Kernels must not decline a call in run(): no other kernel is tried then. */
        if (status == CATENA_E_UNSUPPORTED) status = CATENA_E_INTERNAL;
    }
    free(scratch);
    free(t);
    return status;
}
/* Runs the eligible kernel of the highest priority that supports the call. */
static catena_status run_best(minihost_call *c, int32_t phase) {
    const catena_kernel *tried[64];
    for (uint32_t n = 0; n < sizeof tried / sizeof *tried; ++n) {
        const catena_kernel *best = NULL;
        const catena_plugin *from = NULL;
        for (uint32_t p = 0; p < minihost_n_plugins; ++p)
            for (uint32_t i = 0; i < minihost_plugins[p]->n_kernels; ++i) {
                const catena_kernel *k = minihost_plugins[p]->kernels[i];
                uint32_t at = 0;
                while (at < n && tried[at] != k) ++at;
                if (at < n || k->phase != phase || !serves(c, k)) continue;
                /* Only kernels of the same plugin and variant may read saved state. */
                if (phase == CATENA_PHASE_BACKWARD && k->variant != NULL &&
                    (minihost_plugins[p] != c->plugin || c->kernel->variant == NULL ||
                     strcmp(k->variant, c->kernel->variant) != 0))
                    continue;
                if (best == NULL || k->priority > best->priority)
                    best = k, from = minihost_plugins[p];
            }
        if (best == NULL) break;
        const catena_status status = run(c, best);
        if (status != CATENA_E_UNSUPPORTED) {
            if (phase == CATENA_PHASE_FORWARD) c->kernel = best, c->plugin = from;
            return status;
        }
        minihost_begin_call();
        tried[n] = best;
    }
    return minihost_fail(CATENA_E_UNSUPPORTED, "[%s] kernel: expected one for this call, got none",
                         c->function->name);
}

catena_status minihost_forward(minihost_call *c) {
    minihost_begin_call();
    const catena_status status = minihost_infer(c);
    if (status != CATENA_OK) return status;
    for (uint32_t i = 0; i < c->n_y; ++i)
        if (minihost_allocate(&c->y[i], &c->y[i].meta) == NULL)
            return minihost_fail(CATENA_E_NOMEM, "out of memory");
    if ((c->function->flags & CATENA_FUNCTION_VIEW) == 0) return run_best(c, CATENA_PHASE_FORWARD);
    memcpy(c->y[0].data, c->x[0].data, minihost_bytes(&c->y[0]));
    return CATENA_OK;
}

/* Computes the gradient with the function's composition of other functions. */
static catena_status compose(minihost_call *c, uint64_t targets) {
    const catena_function *f = c->function;
    catena_ctx ctx = {"cpu", 1, NULL};
    catena_var made[3 * CATENA_MAX_PORTS];
    catena_var *x[CATENA_MAX_PORTS], *y[CATENA_MAX_PORTS], *gy[CATENA_MAX_PORTS];
    catena_var *gx[CATENA_MAX_PORTS] = {NULL};
    const catena_meta *metas[CATENA_MAX_PORTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_x; ++i) {
        const int rest = (f->retain_x & CATENA_RETAIN_REST) != 0 && i + 1 >= f->n_inputs;
        metas[i] = c->x[i].data == NULL ? NULL : &c->x[i].meta;
        made[n].array = c->x[i];
        x[i] = metas[i] != NULL && (rest || (f->retain_x >> i & 1) != 0) ? &made[n++] : NULL;
    }
    for (uint32_t i = 0; i < c->n_y; ++i) {
        made[n].array = c->y[i];
        y[i] = (f->retain_y >> i & 1) != 0 ? &made[n++] : NULL;
        made[n].array = c->gy[i];
        gy[i] = c->gy[i].data != NULL ? &made[n++] : NULL;
    }
    const catena_gradient_call call = {.struct_size = sizeof call,
                                       .flags = CATENA_CALL_TRAIN,
                                       .function = f,
                                       .attrs = c->attrs,
                                       .n_x = c->n_x,
                                       .n_y = c->n_y,
                                       .x = x,
                                       .y = y,
                                       .gy = gy,
                                       .gx = gx,
                                       .targets = &targets,
                                       .x_meta = metas};
    catena_status status = f->gradient(&ctx, &call);
    for (uint32_t i = 0; status == CATENA_OK && i < c->n_x; ++i) {
        const size_t bytes = c->gx[i].data == NULL ? 0 : minihost_bytes(&c->gx[i]);
        if (bytes == 0) continue;
        if (gx[i] == NULL) memset(c->gx[i].data, 0, bytes);
        else if (minihost_bytes(&gx[i]->array) == bytes)
            memcpy(c->gx[i].data, gx[i]->array.data, bytes);
        else
            status = minihost_fail(CATENA_E_SHAPE,
                                   "[%s] gradient of %s: expected its shape, got another", f->name,
                                   port_of(f, i)->name);
    }
    while (ctx.vars != NULL) {
        catena_var *next = ctx.vars->next;
        free(ctx.vars->array.data);
        free(ctx.vars);
        ctx.vars = next;
    }
    return status;
}

static catena_status targets_of(minihost_call *c, uint64_t *targets) {
    minihost_begin_call();
    *targets = 0;
    if ((c->function->flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0)
        return minihost_fail(CATENA_E_NOT_DIFFERENTIABLE, "[%s] it is not differentiable",
                             c->function->name);
    for (uint32_t i = 0; i < c->n_x; ++i) {
        const uint8_t code = c->x[i].meta.dtype.code;
        if (c->x[i].data == NULL || (code != CATENA_CODE_FLOAT && code != CATENA_CODE_BFLOAT) ||
            (port_of(c->function, i)->flags & CATENA_PORT_NON_DIFFERENTIABLE) != 0)
            continue;
        if (minihost_allocate(&c->gx[i], &c->x[i].meta) == NULL)
            return minihost_fail(CATENA_E_NOMEM, "out of memory");
        *targets |= (uint64_t)1 << i;
    }
    return CATENA_OK;
}
catena_status minihost_compose(minihost_call *c) {
    uint64_t targets;
    const catena_status status = targets_of(c, &targets);
    if (status != CATENA_OK) return status;
    if (c->function->gradient == NULL)
        return minihost_fail(CATENA_E_NOT_DIFFERENTIABLE, "[%s] its gradient is no composition",
                             c->function->name);
    return compose(c, targets);
}
catena_status minihost_backward(minihost_call *c) {
    uint64_t targets;
    catena_status status = targets_of(c, &targets);
    if (status == CATENA_OK) status = run_best(c, CATENA_PHASE_BACKWARD);
    if (status != CATENA_E_UNSUPPORTED || c->function->gradient == NULL) return status;
    return minihost_compose(c);
}
