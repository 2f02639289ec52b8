/* A complete host for catena's plugins, in one file of C99: it loads them, and calls their functions
 * on host memory, forward and backward, on one thread. It needs nothing but the ABI's headers. It
 * offers no extensions, runs no compositions, and never unloads a plugin.
 *
 * cc -std=c99 -I PREFIX/include minihost.c -ldl -o minihost
 *
 * usage: minihost [--with PLUGIN]... [--compose] PLUGIN [FUNCTION [NAME=NUMBER | SHAPE]...]
 *
 * Shows a plugin's functions, or runs one of them, and the gradient of the sum of its outputs.
 * SHAPE: extents, as in 2x3, "" for 0-d; "-" for a missing input. Input i holds i + 0.1, i + 0.2,
 * ... in float32. --with: loads a plugin whose functions gradients call. --compose: uses no
 * gradient kernels. */
#define _POSIX_C_SOURCE 200112L
#include <catena/abi.h>
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* in services that a small host simplifies */

enum { PORTS = CATENA_MAX_PORTS, MAX_PLUGINS = 64, MAX_KERNELS = 8192 };

/* A dense, row-major array. Kernels see its tensor, infer() its meta, gradient() its address. */
struct catena_var {
    catena_tensor tensor;
    catena_meta meta;
    int64_t strides[CATENA_MAX_NDIM];
    catena_var *next;
};
/* A kernel, and the plugin that registered it. */
typedef struct owned_kernel {
    const catena_kernel *kernel;
    const catena_plugin *plugin;
} owned_kernel;
/* A call of a function. Arrays that are missing are NULL. */
struct catena_ctx {
    const catena_function *function;
    owned_kernel ran; /* forward; backward kernels of its variant read what it saved */
    catena_value attrs[CATENA_MAX_ATTRS];
    uint64_t given;    /* bit i: attribute i has been set */
    uint64_t targets;  /* bit i: gx[i] is wanted */
    uint32_t n_x, n_y; /* n_x: more than the function's inputs if the last one is variadic */
    catena_var *x[PORTS], *y[PORTS], *gy[PORTS], *gx[PORTS], *saved[PORTS];
    const catena_meta *x_meta[PORTS];
    int in_gradient; /* its gradient is being composed */
};

static const catena_plugin *plugins[MAX_PLUGINS];
static owned_kernel kernels[MAX_KERNELS]; /* of the highest priority first */
static uint32_t n_plugins, n_kernels;
static catena_var *arrays; /* all of them, until release() */
static char error[2048];   /* why a call failed: the first reason since it began */

static int has(uint64_t set, uint32_t i) { return (set >> i & 1) != 0; }

/* Stores the reason of a failure, and returns its status. */
static catena_status failed(const catena_ctx *c, catena_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (*error == '\0') {
        if (c != NULL && c->function != NULL)
            snprintf(error, sizeof error / 2, "[%s] ", c->function->name);
        vsnprintf(error + strlen(error), sizeof error / 2, format, args);
    }
    va_end(args);
    return status;
}
static catena_status no_memory(void) { return failed(NULL, CATENA_E_NOMEM, "out of memory"); }

/* ---- arrays ---- */

/* Makes an uninitialized array. */
static catena_status allocate(const catena_meta *meta, catena_var **out) {
    catena_var array = {.meta = *meta, .next = arrays};
    int64_t stride = 1;
    uint64_t size = 1;
    for (int32_t d = meta->ndim; d-- > 0;) {
        const int64_t extent = meta->shape[d] == 0 ? 1 : meta->shape[d];
        if (extent < 0 || extent > (INT64_MAX >> 8) / stride) return no_memory(); /* overflow */
        array.strides[d] = stride;
        stride *= extent;
        size *= (uint64_t)meta->shape[d];
    }
    const size_t bytes = size * meta->dtype.bits / 8, header = (sizeof array + 63) / 64 * 64;
    void *memory;
    if (posix_memalign(&memory, 64, header + bytes) != 0) return no_memory();
    catena_var *a = *out = arrays = memory;
    *a = array;
    a->tensor = (catena_tensor){.struct_size = sizeof a->tensor, .nbytes = bytes, .align_log2 = 6};
    a->tensor.dl = (catena_dl_tensor){
        (char *)memory + header, 1, 0, meta->ndim, meta->dtype, a->meta.shape, a->strides, 0};
    return CATENA_OK;
}
static void release(void) {
    while (arrays != NULL) {
        catena_var *next = arrays->next;
        free(arrays);
        arrays = next;
    }
}
static int is_float32(const catena_var *a) {
    return a != NULL && a->meta.dtype.code == CATENA_CODE_FLOAT && a->meta.dtype.bits == 32;
}
/* Makes an array of float32: start + step, start + 2 * step, ... */
static catena_status fill(const catena_meta *meta, float start, float step, catena_var **out) {
    const catena_status status = allocate(meta, out);
    for (size_t i = 0; status == CATENA_OK && i < (*out)->tensor.nbytes / sizeof(float); ++i)
        ((float *)(*out)->tensor.dl.data)[i] = start + step * (float)(i + 1);
    return status;
}

/* ---- calls ---- */

static catena_status CATENA_CALL find(catena_ctx *c, const char *name,
                                      const catena_callable **out) {
    for (uint32_t p = 0; p < n_plugins; ++p)
        for (uint32_t i = 0; i < plugins[p]->n_functions; ++i) {
            const catena_function *f = plugins[p]->functions[i];
            *out = (const catena_callable *)f;
            if (strcmp(f->name, name) == 0) return CATENA_OK;
        }
    return failed(NULL, CATENA_E_INVALID, "no plugin has the function %s", name);
}
/* Begins a call without arrays, and with the defaults of the attributes. */
static void begin(catena_ctx *c, const catena_callable *callable) {
    const catena_function *f = (const catena_function *)callable;
    *error = '\0';
    *c = (catena_ctx){.function = f, .n_x = f->n_inputs, .n_y = f->n_outputs};
    for (uint32_t i = 0; i < f->n_attrs; ++i) c->attrs[i] = f->attrs[i]->def;
}
/* Returns the port of the i-th input of a call: the last one repeats if it is variadic. */
static const catena_port_spec *port(const catena_function *f, uint32_t i) {
    return f->inputs[i < f->n_inputs ? i : f->n_inputs - 1];
}
/* Returns the index of an attribute, or n_attrs if there is none of this name. */
static uint32_t attribute(const catena_function *f, const char *name) {
    uint32_t i = 0;
    while (i < f->n_attrs && strcmp(f->attrs[i]->name, name) != 0) ++i;
    return i;
}
/* Whether a value is of another kind, out of range, or none of the choices. */
static int refused(const catena_attr_spec *spec, const catena_value *value) {
    const int is_float = value->kind == CATENA_ATTR_FLOAT || value->kind == CATENA_ATTR_FLOATS;
    const double *f = value->kind == CATENA_ATTR_FLOATS ? value->v.floats : &value->v.f;
    const int64_t *n = value->kind == CATENA_ATTR_INTS ? value->v.ints : &value->v.i;
    const char *const *choice = spec->choices;
    if (value->kind != spec->kind) return 1;
    if (value->kind == CATENA_ATTR_BOOL) return *n != 0 && *n != 1;
    if (value->kind == CATENA_ATTR_STRING && choice != NULL) {
        while (*choice != NULL && strcmp(*choice, value->v.s) != 0) ++choice;
        return *choice == NULL;
    }
    for (uint32_t i = 0; i < value->n && (spec->flags & CATENA_ATTR_RANGED) != 0; ++i)
        if (is_float ? !(spec->lo.v.f <= f[i] && f[i] <= spec->hi.v.f)
                     : n[i] < spec->lo.v.i || n[i] > spec->hi.v.i)
            return 1;
    return 0;
}
static catena_status set(catena_ctx *c, const char *name, const catena_value *value) {
    const uint32_t i = attribute(c->function, name);
    const char *expected = NULL;
    if (i == c->function->n_attrs) expected = "a name of the function's, got another";
    else if (has(c->given, i)) expected = "once, got twice";
    else if (refused(c->function->attrs[i], value))
        expected = "a value of its kind, range and choices, got another";
    if (expected != NULL)
        return failed(c, CATENA_E_INVALID, "attribute '%s': expected %s", name, expected);
    c->attrs[i] = *value;
    c->given |= (uint64_t)1 << i;
    return CATENA_OK;
}

/* ---- kernels ---- */

/* Whether a kernel may run this phase: a row of its dtypes, one for each type variable in order of
 * first use, must match the arrays. */
static int serves(const catena_ctx *c, int32_t phase, const owned_kernel *owned) {
    const catena_function *f = c->function;
    const catena_kernel *k = owned->kernel, *ran = c->ran.kernel;
    const uint32_t n = c->n_x + c->n_y;
    const catena_dtype *row = k->types;
    if (k->phase != phase || strcmp(k->function, f->name) != 0 || strcmp(k->device, "cpu") != 0 ||
        *k->isa != '\0' || f->version < k->version_min || f->version > k->version_max ||
        k->n_saved > PORTS)
        return 0;
    /* Only kernels of the same plugin and variant may read saved state. */
    if (phase == CATENA_PHASE_BACKWARD && k->variant != NULL &&
        (owned->plugin != c->ran.plugin || ran->variant == NULL ||
         strcmp(k->variant, ran->variant) != 0))
        return 0;
    for (uint32_t r = 0; r < k->n_types; ++r) {
        const char *vars[CATENA_MAX_TYPE_VARS];
        uint32_t n_vars = 0, matching = 0;
        for (uint32_t i = 0; i < n; ++i) {
            const catena_var *a = i < c->n_x ? c->x[i] : c->y[i - c->n_x];
            const char *var = (i < c->n_x ? port(f, i) : f->outputs[i - c->n_x])->type_var;
            uint32_t v = 0;
            while (v < n_vars && strcmp(vars[v], var) != 0) ++v;
            if (v == n_vars) vars[n_vars++] = var;
            matching += a == NULL || memcmp(&a->meta.dtype, &row[v], sizeof *row) == 0;
        }
        if (matching == n) return 1;
        row += n_vars;
    }
    return 0;
}
/* Whether retain_x contains input i: CATENA_RETAIN_REST is all from the last port on. */
static int retains(const catena_function *f, uint64_t retain_x, uint32_t i) {
    return has(retain_x, i) || ((retain_x & CATENA_RETAIN_REST) != 0 && i + 1 >= f->n_inputs);
}
/* Returns what a kernel sees of an array. */
static catena_tensor *lend(catena_var *a, uint32_t flags) {
    if (a == NULL) return NULL;
    a->tensor.flags = CATENA_TENSOR_CONTIGUOUS | flags;
    return &a->tensor;
}
/* Runs a kernel. CATENA_E_UNSUPPORTED means that another kernel may support the call. */
static catena_status run(catena_ctx *c, const catena_kernel *k) {
    const catena_function *f = c->function;
    const int backward = k->phase == CATENA_PHASE_BACKWARD;
    const uint64_t retain_x = k->variant != NULL ? k->retain_x : f->retain_x;
    const uint64_t retain_y = k->variant != NULL ? k->retain_y : f->retain_y;
    const catena_tensor *x[PORTS], *gy[PORTS];
    catena_tensor *y[PORTS], *gx[PORTS], *saved[PORTS];
    catena_meta metas[PORTS] = {{0}}, *meta_list[PORTS];
    uint8_t req[PORTS];
    for (uint32_t i = 0; i < PORTS; ++i) {
        const int is_mutated = c->x[i] != NULL && (port(f, i)->flags & CATENA_PORT_MUTATED) != 0;
        x[i] = lend(!backward || retains(f, retain_x, i) ? c->x[i] : NULL,
                    is_mutated && !backward ? 0u : CATENA_TENSOR_READONLY);
        y[i] = lend(!backward || has(retain_y, i) ? c->y[i] : NULL,
                    backward ? CATENA_TENSOR_READONLY : 0u);
        gy[i] = lend(c->gy[i], CATENA_TENSOR_READONLY);
        gx[i] = lend(c->gx[i], 0);
        saved[i] = lend(c->saved[i], 0);
        req[i] = (backward ? gx[i] : y[i]) != NULL ? CATENA_REQ_WRITE : CATENA_REQ_NONE;
        metas[i].struct_size = sizeof *metas;
        meta_list[i] = &metas[i];
    }
    /* clang-format off */
    catena_call call = {
        sizeof call, .flags = CATENA_CALL_TRAIN, .phase = k->phase, .n_saved = k->n_saved,
        .function = f, .attrs = c->attrs, .n_x = c->n_x, .n_y = c->n_y, .x = x, .y = y, .gy = gy,
        .gx = gx, .saved = saved, .req = req, .targets = &c->targets};
    /* clang-format on */
    catena_plan plan = {.struct_size = sizeof plan, .n_saved = k->n_saved, .saved = meta_list};
    catena_status status = CATENA_OK;
    if (k->supports != NULL && k->supports(c, &call) == 0) return CATENA_E_UNSUPPORTED;
    if (k->plan != NULL) status = k->plan(c, &call, &plan);
    for (uint32_t i = 0; status == CATENA_OK && !backward && i < k->n_saved; ++i) {
        status = allocate(&metas[i], &c->saved[i]);
        saved[i] = lend(c->saved[i], 0);
    }
    if (status != CATENA_OK) return status;
    if (posix_memalign(&call.scratch, 64, plan.scratch_bytes) != 0) return no_memory();
    call.scratch_bytes = plan.scratch_bytes;
    status = k->run(c, &call);
    free(call.scratch);
    /* Kernels must not decline a call in run(): no other kernel is tried then. */
    return status == CATENA_E_UNSUPPORTED ? CATENA_E_INTERNAL : status;
}
/* Runs the kernel of the highest priority that supports the call. */
static catena_status run_best(catena_ctx *c, int32_t phase) {
    for (uint32_t i = 0; i < n_kernels; ++i) {
        if (!serves(c, phase, &kernels[i])) continue;
        const catena_status status = run(c, kernels[i].kernel);
        if (phase == CATENA_PHASE_FORWARD) c->ran = kernels[i];
        if (status != CATENA_E_UNSUPPORTED) return status;
        *error = '\0';
    }
    return failed(c, CATENA_E_UNSUPPORTED, "kernel: expected one for this call, got none");
}

/* ---- forward and backward ---- */

/* Computes y from x. */
static catena_status forward(catena_ctx *c) {
    const catena_function *f = c->function;
    catena_meta metas[PORTS], *y[PORTS];
    *error = '\0';
    for (uint32_t i = 0; i < f->n_attrs; ++i)
        if ((f->attrs[i]->flags & CATENA_ATTR_REQUIRED) != 0 && !has(c->given, i))
            return failed(c, CATENA_E_INVALID, "attribute '%s': expected a value, got none",
                          f->attrs[i]->name);
    if (f->infer == NULL)
        return failed(c, CATENA_E_UNSUPPORTED, "expected kernels, got a composition alone");
    if (c->n_x > f->n_inputs &&
        (f->n_inputs == 0 || (port(f, c->n_x)->flags & CATENA_PORT_VARIADIC) == 0))
        return failed(c, CATENA_E_INVALID, "inputs: expected %u, got %u", f->n_inputs, c->n_x);
    for (uint32_t i = 0; i < c->n_x; ++i) {
        c->x_meta[i] = c->x[i] == NULL ? NULL : &c->x[i]->meta;
        if (c->x[i] == NULL && (port(f, i)->flags & CATENA_PORT_OPTIONAL) == 0)
            return failed(c, CATENA_E_INVALID, "%s: expected an array, got none", port(f, i)->name);
    }
    for (uint32_t i = 0; i < c->n_y; ++i) {
        metas[i] = (catena_meta){.struct_size = sizeof *metas, .device_type = 1}; /* the CPU */
        y[i] = &metas[i];
    }
    catena_status status = f->infer(c, c->attrs, c->x_meta, c->n_x, y, c->n_y);
    for (uint32_t i = 0; status == CATENA_OK && i < c->n_y; ++i)
        status = allocate(&metas[i], &c->y[i]);
    if (status != CATENA_OK) return status;
    if ((f->flags & CATENA_FUNCTION_VIEW) == 0) return run_best(c, CATENA_PHASE_FORWARD);
    memcpy(c->y[0]->tensor.dl.data, c->x[0]->tensor.dl.data, c->y[0]->tensor.nbytes);
    return CATENA_OK;
}
/* Computes gx with other functions, whose plugins must be loaded. */
static catena_status compose_gradient(catena_ctx *c) {
    const catena_function *f = c->function;
    catena_var *x[PORTS], *y[PORTS], *gx[PORTS] = {NULL};
    *error = '\0';
    if (f->gradient == NULL)
        return failed(c, CATENA_E_NOT_DIFFERENTIABLE, "its gradient is no composition");
    for (uint32_t i = 0; i < PORTS; ++i) {
        x[i] = retains(f, f->retain_x, i) ? c->x[i] : NULL;
        y[i] = has(f->retain_y, i) ? c->y[i] : NULL;
    }
    /* clang-format off */
    const catena_gradient_call call = {
        sizeof call, .flags = CATENA_CALL_TRAIN, .function = f, .attrs = c->attrs, .n_x = c->n_x,
        .n_y = c->n_y, .x = x, .y = y, .gy = c->gy, .gx = gx, .targets = &c->targets,
        .x_meta = c->x_meta};
    /* clang-format on */
    c->in_gradient = 1;
    catena_status status = f->gradient(c, &call);
    c->in_gradient = 0;
    for (uint32_t i = 0; status == CATENA_OK && i < c->n_x; ++i) {
        if (!has(c->targets, i)) continue;
        if (gx[i] == NULL) memset(c->gx[i]->tensor.dl.data, 0, c->gx[i]->tensor.nbytes);
        else if (gx[i]->tensor.nbytes == c->gx[i]->tensor.nbytes) c->gx[i] = gx[i];
        else
            status = failed(c, CATENA_E_SHAPE, "gradient of %s: expected its shape, got another",
                            port(f, i)->name);
    }
    return status;
}
/* Computes gx of each differentiable input from gy, by a kernel or else by composition. */
static catena_status backward(catena_ctx *c, int composed) {
    *error = '\0';
    c->targets = 0;
    if ((c->function->flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0)
        return failed(c, CATENA_E_NOT_DIFFERENTIABLE, "it is not differentiable");
    for (uint32_t i = 0; i < c->n_x; ++i) {
        const uint32_t flags = port(c->function, i)->flags;
        if (!is_float32(c->x[i]) || (flags & CATENA_PORT_NON_DIFFERENTIABLE) != 0) continue;
        if (allocate(&c->x[i]->meta, &c->gx[i]) != CATENA_OK) return CATENA_E_NOMEM;
        c->targets |= (uint64_t)1 << i;
    }
    if (!composed) {
        const catena_status status = run_best(c, CATENA_PHASE_BACKWARD);
        if (status != CATENA_E_UNSUPPORTED || c->function->gradient == NULL) return status;
    }
    return compose_gradient(c);
}

/* ---- the services that plugins call ---- */

static void CATENA_CALL log_text(catena_ctx *c, int32_t level, const char *text) {
    if (level >= CATENA_LOG_WARNING) fprintf(stderr, "plugin: %s\n", text);
}
static catena_status CATENA_CALL fail(catena_ctx *c, catena_status status, const char *text) {
    return failed(NULL, status, "%s", text);
}
static void CATENA_CALL parallel_for(catena_ctx *c, int64_t n, int64_t grain, catena_range_fn fn,
                                     void *user) {
    if (n > 0) fn(user, 0, n, 0);
}
static int32_t CATENA_CALL slots(catena_ctx *c) { return 1; }
/* Reserves n Philox blocks. Plugins compute the random numbers themselves. */
static catena_status CATENA_CALL philox(catena_ctx *c, uint64_t n, uint64_t *seed,
                                        uint64_t *first) {
    static uint64_t drawn;
    *seed = 0;
    *first = drawn;
    drawn += n;
    return CATENA_OK;
}
static int64_t CATENA_CALL config(catena_ctx *c, const char *key, int64_t otherwise) {
    return strcmp(key, "train") == 0 ? 1 : otherwise;
}
static const void *const *CATENA_CALL extensions(catena_ctx *c, const char *id) {
    static const void *const none[] = {NULL};
    return none;
}
/* Calls a function within a gradient. */
static catena_status CATENA_CALL call(catena_ctx *ctx, const catena_callable *callable,
                                      const catena_named_value *attrs, uint32_t n_attrs,
                                      catena_var *const *x, uint32_t n_x, catena_var **y,
                                      uint32_t n_y) {
    catena_ctx c;
    if (!ctx->in_gradient)
        return failed(ctx, CATENA_E_INVALID, "call: expected within a gradient, got elsewhere");
    begin(&c, callable);
    if (n_x > PORTS || n_y > c.n_y)
        return failed(&c, CATENA_E_INVALID, "call: expected at most its ports, got more");
    catena_status status = CATENA_OK;
    for (uint32_t i = 0; status == CATENA_OK && i < n_attrs; ++i)
        status = set(&c, attrs[i].name, &attrs[i].value);
    for (uint32_t i = 0; i < n_x; ++i) c.x[i] = x[i];
    if (n_x > c.n_x) c.n_x = n_x;
    if (status == CATENA_OK) status = forward(&c);
    for (uint32_t i = 0; i < n_y; ++i) y[i] = c.y[i];
    return status;
}
static catena_status CATENA_CALL meta(catena_ctx *c, const catena_var *var, catena_meta *out) {
    const size_t size = out->struct_size < sizeof *out ? out->struct_size : sizeof *out;
    memcpy(&out->ndim, &var->meta.ndim, size - offsetof(catena_meta, ndim));
    return CATENA_OK;
}
static const void *CATENA_CALL get_extension(const catena_host *h, const char *id) { return NULL; }
static catena_status CATENA_CALL read_elements(catena_ctx *c, const catena_var *var,
                                               const void **elements) {
    return failed(c, CATENA_E_INVALID, "read: expected within a composition, got elsewhere");
}
/* clang-format off */
static const catena_host table = {
    sizeof table, .abi_major = CATENA_ABI_MAJOR, .abi_minor = CATENA_ABI_MINOR,
    .name = "minihost", .version = "1.0.0", .log = log_text, .fail = fail,
    .parallel_for = parallel_for, .slots = slots, .philox = philox, .config = config,
    .extensions = extensions, .find = find, .call = call, .meta = meta,
    .get_extension = get_extension, .read = read_elements};
/* clang-format on */

/* Loads a plugin, which gets the host's table, and stores the plugin's table. */
static catena_status load(const char *path, const catena_host *host, const catena_plugin **out) {
    static catena_ctx loading;
    const catena_plugin *(CATENA_CALL * entry)(const catena_host *, catena_ctx *);
    char file[FILENAME_MAX];
    const char *folder = strchr(path, '/') == NULL ? "./" : ""; /* not of the library path */
    *error = '\0';
    if (snprintf(file, sizeof file, "%s%s", folder, path) >= (int)sizeof file)
        return failed(NULL, CATENA_E_INVALID, "%s: expected a shorter path", path);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return failed(NULL, CATENA_E_INVALID, "%s", dlerror());
    const catena_manifest *m = dlsym(library, "catena_manifest_v1");
    *(void **)&entry = dlsym(library, "catena_plugin_entry_v1");
    if (m == NULL || entry == NULL || memcmp(m->magic, CATENA_MANIFEST_MAGIC, 8) != 0)
        return failed(NULL, CATENA_E_INVALID, "%s: expected a plugin of ABI 1, got none", path);
    if (m->abi_major != host->abi_major || m->abi_minor_needed > host->abi_minor)
        return failed(NULL, CATENA_E_INVALID, "%s: ABI: it needs %d.%d, this host has %d.%d", path,
                      m->abi_major, m->abi_minor_needed, host->abi_major, host->abi_minor);
    const catena_plugin *p = *out = entry(host, &loading);
    if (p == NULL) return failed(NULL, CATENA_E_INVALID, "%s: its entry failed", path);
    for (uint32_t i = 0; i < n_plugins; ++i)
        if (plugins[i] == p) return CATENA_OK;
    if (n_plugins == MAX_PLUGINS || p->n_kernels > MAX_KERNELS - n_kernels)
        return failed(NULL, CATENA_E_INVALID, "%s: too many", path);
    plugins[n_plugins++] = p;
    if (p->init != NULL && p->init(host, &loading) != CATENA_OK) {
        --n_plugins;
        return failed(NULL, CATENA_E_INVALID, "%s: its init() failed", path);
    }
    for (uint32_t i = 0; i < p->n_kernels; ++i) {
        uint32_t at = n_kernels++;
        for (; at > 0 && kernels[at - 1].kernel->priority < p->kernels[i]->priority; --at)
            kernels[at] = kernels[at - 1];
        kernels[at] = (owned_kernel){p->kernels[i], p};
    }
    return CATENA_OK;
}

/* ---- the program ---- */

static void show(const catena_plugin *plugin) {
    for (uint32_t i = 0; i < plugin->n_functions; ++i) {
        const catena_function *f = plugin->functions[i];
        printf("%s(", f->name);
        for (uint32_t k = 0; k < f->n_inputs; ++k)
            printf("%s%s", k == 0 ? "" : ", ", f->inputs[k]->name);
        for (uint32_t k = 0; k < f->n_attrs; ++k) printf(", %s=", f->attrs[k]->name);
        printf(") ->");
        for (uint32_t k = 0; k < f->n_outputs; ++k) printf(" %s", f->outputs[k]->name);
        printf("\n");
    }
}
static void print(const char *what, const char *name, const catena_var *a) {
    if (!is_float32(a)) return;
    printf("%s%s (", what, name);
    for (int32_t d = 0; d < a->meta.ndim; ++d)
        printf("%s%lld", d == 0 ? "" : "x", (long long)a->meta.shape[d]);
    printf(") =");
    for (size_t i = 0; i < a->tensor.nbytes / sizeof(float); ++i)
        printf(" %.6g", (double)((const float *)a->tensor.dl.data)[i]);
    printf("\n");
}
/* Sets the attribute of "NAME=NUMBER", by its kind. Returns what is wrong, or NULL. */
static const char *parse_number(catena_ctx *c, char *text) {
    char *number = strchr(text, '='), *rest;
    *number++ = '\0';
    const uint32_t i = attribute(c->function, text);
    const double x = strtod(number, &rest);
    catena_value value = {CATENA_ATTR_FLOAT, 1, {.i = fabs(x) < 0x1p53 ? (int64_t)x : 0}};
    if (i < c->function->n_attrs) value.kind = c->function->attrs[i]->kind;
    const int is_float = value.kind == CATENA_ATTR_FLOAT;
    if (rest == number || *rest != '\0' || isspace((unsigned char)*number) || !isfinite(x) ||
        value.kind > CATENA_ATTR_BOOL || (!is_float && (double)value.v.i != x))
        return "expected an attribute that is a number";
    if (is_float) value.v.f = x;
    return set(c, text, &value) == CATENA_OK ? NULL : error;
}
/* Makes the i-th input from a shape. Returns what is wrong, or NULL. */
static const char *parse_shape(catena_ctx *c, uint32_t i, const char *text) {
    catena_meta m = {sizeof m, .dtype = {CATENA_CODE_FLOAT, 32, 1}, .device_type = 1};
    const char *wrong = "expected a shape, as in 2x3";
    if (i >= PORTS) return wrong;
    if (strcmp(text, "-") == 0) return NULL;
    while (*text != '\0') {
        char *rest;
        if (m.ndim == CATENA_MAX_NDIM || !isdigit((unsigned char)*text)) return wrong;
        m.shape[m.ndim++] = strtoll(text, &rest, 10); /* INT64_MAX if it is too large */
        text = *rest == 'x' && rest[1] != '\0' ? rest + 1 : rest;
    }
    return fill(&m, (float)i, 0.1f, &c->x[i]) == CATENA_OK ? NULL : wrong;
}
/* Runs a function, and its gradient. Returns what is wrong, or NULL. */
static const char *use(const char *function, char **args, int composed) {
    const catena_callable *found = NULL;
    catena_ctx c;
    uint32_t n_x = 0;
    if (find(NULL, function, &found) != CATENA_OK) return error;
    begin(&c, found);
    for (; *args != NULL; ++args) {
        const int is_number = strchr(*args, '=') != NULL;
        const char *wrong = is_number ? parse_number(&c, *args) : parse_shape(&c, n_x++, *args);
        if (wrong != NULL) return wrong;
    }
    if (n_x > c.n_x) c.n_x = n_x;
    if (forward(&c) != CATENA_OK) return error;
    for (uint32_t i = 0; i < c.n_y; ++i) {
        const catena_port_spec *output = c.function->outputs[i];
        print("", output->name, c.y[i]);
        if (is_float32(c.y[i]) && (output->flags & CATENA_PORT_HIDDEN) == 0 &&
            fill(&c.y[i]->meta, 1, 0, &c.gy[i]) != CATENA_OK)
            return error;
    }
    if ((c.function->flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0) return NULL;
    if (backward(&c, composed) != CATENA_OK) return error;
    for (uint32_t i = 0; i < c.n_x; ++i) print("gradient of ", port(c.function, i)->name, c.gx[i]);
    return NULL;
}
static const char *program(char **args) {
    const char *usage = "usage: minihost [--with PLUGIN]... [--compose] PLUGIN [FUNCTION ...]";
    const catena_plugin *plugin;
    int composed = 0;
    for (; *args != NULL && strncmp(*args, "--", 2) == 0; ++args) {
        if (strcmp(*args, "--compose") == 0) composed = 1;
        else if (strcmp(*args, "--with") != 0 || *++args == NULL) return usage;
        else if (load(*args, &table, &plugin) != CATENA_OK) return error;
    }
    if (*args == NULL) return usage;
    if (load(*args, &table, &plugin) != CATENA_OK) return error;
    if (args[1] != NULL) return use(args[1], args + 2, composed);
    show(plugin);
    return NULL;
}
int main(int argc, char **argv) {
    const char *wrong = program(argv + (argc > 0));
    if (wrong != NULL) fprintf(stderr, "minihost: %s\n", wrong);
    release();
    return wrong != NULL;
}
