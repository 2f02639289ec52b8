/* The host. Uses one thread, offers no extensions, runs no compositions, and never unloads a plugin. */
#define _POSIX_C_SOURCE 200112L
#include "minihost.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call in progress. */
struct catena_ctx {
    int in_gradient;
    catena_var *vars;
};

static const catena_plugin *plugins[64];
static uint32_t n_plugins;
static char error[1024];

const char *minihost_error(void) { return *error == '\0' ? "it gave no reason" : error; }

/* ---- arrays ---- */

int64_t minihost_size(const minihost_array *a) {
    int64_t n = 1;
    for (int32_t d = 0; d < a->meta.ndim; ++d) n *= a->meta.shape[d];
    return n;
}
static size_t bytes_of(const minihost_array *a) {
    return (size_t)minihost_size(a) * a->meta.dtype.bits / 8;
}
void *minihost_allocate(minihost_array *a, const catena_meta *like) {
    const catena_meta copy = *like; /* like may be the array's own meta */
    free(a->data);
    a->data = NULL;
    int64_t stride = 1;
    for (int32_t d = copy.ndim; d-- > 0;) {
        const int64_t extent = copy.shape[d] > 1 ? copy.shape[d] : 1;
        if (extent > (INT64_MAX >> 8) / stride) return NULL; /* the byte count would overflow */
        a->strides[d] = stride;
        stride *= extent;
    }
    a->meta = copy;
    if (posix_memalign(&a->data, 64, bytes_of(a) + 1) != 0) a->data = NULL;
    return a->data;
}
float *minihost_floats(minihost_array *a, int32_t ndim, const int64_t *shape) {
    catena_meta m = {.struct_size = sizeof m,
                     .ndim = ndim,
                     .dtype = {CATENA_CODE_FLOAT, 32, 1},
                     .device_type = 1};
    for (int32_t d = 0; d < ndim; ++d) m.shape[d] = shape[d];
    return minihost_allocate(a, &m);
}

/* ---- the table of services ---- */

/* Keeps the first error text of a call; calls clear it. */
static catena_status CATENA_CALL fail(catena_ctx *ctx, catena_status status, const char *text) {
    (void)ctx;
    if (*error == '\0') snprintf(error, sizeof error, "%s", text);
    return status;
}
static catena_status failed(catena_status status, const char *format, ...) {
    char text[sizeof error];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail(NULL, status, text);
}
static catena_status no_memory(void) { return failed(CATENA_E_NOMEM, "out of memory"); }

static void CATENA_CALL log_text(catena_ctx *ctx, int32_t level, const char *text) {
    (void)ctx;
    if (level >= CATENA_LOG_WARNING) fprintf(stderr, "plugin: %s\n", text);
}
static void CATENA_CALL parallel_for(catena_ctx *ctx, int64_t n, int64_t grain, catena_range_fn fn,
                                     void *user) {
    (void)ctx, (void)grain;
    if (n > 0) fn(user, 0, n, 0);
}
static int32_t CATENA_CALL slots(catena_ctx *ctx) {
    (void)ctx;
    return 1;
}
/* Reserves n Philox blocks from offset on. Plugins compute the random numbers themselves. */
static catena_status CATENA_CALL philox(catena_ctx *ctx, uint64_t n, uint64_t *seed,
                                        uint64_t *offset) {
    static uint64_t drawn;
    (void)ctx;
    *seed = 0;
    *offset = drawn;
    drawn += n;
    return CATENA_OK;
}
static int64_t CATENA_CALL config(catena_ctx *ctx, const char *key, int64_t otherwise) {
    (void)ctx;
    return strcmp(key, "train") == 0 ? 1 : otherwise;
}
static const void *const *CATENA_CALL extensions(catena_ctx *ctx, const char *id) {
    static const void *const none[] = {NULL};
    (void)ctx, (void)id;
    return none;
}
static catena_status CATENA_CALL find(catena_ctx *ctx, const char *name,
                                      const catena_callable **out) {
    (void)ctx;
    *out = (const catena_callable *)minihost_function(name);
    return *out != NULL ? CATENA_OK
                        : failed(CATENA_E_INVALID, "no plugin has the function %s", name);
}
static catena_status CATENA_CALL call(catena_ctx *ctx, const catena_callable *callable,
                                      const catena_named_value *attrs, uint32_t n_attrs,
                                      catena_var *const *x, uint32_t n_x, catena_var **y,
                                      uint32_t n_y) {
    const catena_function *f = (const catena_function *)callable;
    if (!ctx->in_gradient)
        return failed(CATENA_E_INVALID, "[%s] call: expected within a gradient, got elsewhere",
                      f->name);
    if (n_x > CATENA_MAX_PORTS || n_y > f->n_outputs)
        return failed(CATENA_E_INVALID, "[%s] call: expected at most its ports, got more", f->name);
    minihost_call *c = minihost_begin(f->name, attrs, n_attrs);
    if (c == NULL) return CATENA_E_INVALID;
    if (n_x > c->n_x) c->n_x = n_x;
    for (uint32_t i = 0; i < n_x; ++i)
        if (x[i] != NULL) c->x[i] = x[i]->array; /* borrowed */
    catena_status status = minihost_forward(c);
    for (uint32_t i = 0; status == CATENA_OK && i < n_y; ++i) {
        catena_var *var = y[i] = malloc(sizeof *var);
        if (var == NULL) {
            status = no_memory();
            break;
        }
        *var = (catena_var){c->y[i], ctx->vars};
        ctx->vars = var;
        c->y[i].data = NULL;
    }
    for (uint32_t i = 0; i < n_x; ++i) c->x[i].data = NULL;
    minihost_end(c);
    return status;
}
static catena_status CATENA_CALL meta(catena_ctx *ctx, const catena_var *var, catena_meta *out) {
    const uint32_t struct_size = out->struct_size;
    (void)ctx;
    *out = var->array.meta;
    out->struct_size = struct_size;
    return CATENA_OK;
}
static const void *CATENA_CALL get_extension(const catena_host *host, const char *id) {
    (void)host, (void)id;
    return NULL;
}

static const catena_host table = {
    .struct_size = sizeof(catena_host),
    .abi_major = CATENA_ABI_MAJOR,
    .abi_minor = MINIHOST_MINOR,
    .name = "minihost",
    .version = "1.0.0",
    .log = log_text,
    .fail = fail,
    .parallel_for = parallel_for,
    .slots = slots,
    .philox = philox,
    .config = config,
    .extensions = extensions,
    .find = find,
    .call = call,
    .meta = meta,
    .get_extension = get_extension,
};
const catena_host *minihost_table(void) { return &table; }

/* ---- plugins ---- */

const catena_plugin *minihost_load(const char *path, const catena_host *host) {
    catena_ctx ctx = {0, NULL};
    *error = '\0';
    if (host == NULL) host = &table;
    /* dlopen() would look for a bare name in the library path. */
    char beside[FILENAME_MAX];
    const char *folder = strchr(path, '/') == NULL ? "./" : "";
    if (snprintf(beside, sizeof beside, "%s%s", folder, path) >= (int)sizeof beside)
        return failed(CATENA_E_INVALID, "path of a plugin: expected a shorter one, got %s", path),
               NULL;
    void *library = dlopen(beside, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return failed(CATENA_E_INVALID, "%s", dlerror()), NULL;
    const catena_manifest *m = dlsym(library, "catena_manifest_v1");
    const catena_plugin *(CATENA_CALL * entry)(const catena_host *, catena_ctx *);
    *(void **)&entry = dlsym(library, "catena_plugin_entry_v1");
    if (m == NULL || entry == NULL || memcmp(m->magic, CATENA_MANIFEST_MAGIC, 8) != 0)
        return failed(CATENA_E_INVALID, "%s: expected a plugin of ABI 1, got none", path), NULL;
    if (m->abi_major != host->abi_major || m->abi_minor_needed > host->abi_minor)
        return failed(CATENA_E_INVALID, "%s: ABI: it needs %u.%u, this host has %u.%u", path,
                      (unsigned)m->abi_major, (unsigned)m->abi_minor_needed,
                      (unsigned)host->abi_major, (unsigned)host->abi_minor),
               NULL;
    const catena_plugin *p = entry(host, &ctx);
    if (p == NULL || n_plugins == sizeof plugins / sizeof *plugins)
        return failed(CATENA_E_INVALID, "%s: %s", path, p ? "too many" : "its entry failed"), NULL;
    for (uint32_t i = 0; i < n_plugins; ++i)
        if (plugins[i] == p) return p;
    plugins[n_plugins++] = p;
    if (p->init == NULL || p->init(host, &ctx) == CATENA_OK) return p;
    --n_plugins;
    return failed(CATENA_E_INVALID, "%s: its init() failed", path), NULL;
}
const catena_function *minihost_function(const char *name) {
    for (uint32_t p = 0; p < n_plugins; ++p)
        for (uint32_t i = 0; i < plugins[p]->n_functions; ++i)
            if (strcmp(plugins[p]->functions[i]->name, name) == 0) return plugins[p]->functions[i];
    return NULL;
}
const catena_port_spec *minihost_port(const catena_function *f, uint32_t i) {
    return f->inputs[i < f->n_inputs ? i : f->n_inputs - 1];
}

/* ---- calls ---- */

static int refused(const catena_attr_spec *s, const catena_value *v) {
    const char *const *choice = s->choices;
    if (v->kind != s->kind) return 1;
    if (v->kind == CATENA_ATTR_BOOL) return v->v.i != 0 && v->v.i != 1;
    if (v->kind == CATENA_ATTR_STRING && choice != NULL) {
        while (*choice != NULL && strcmp(*choice, v->v.s) != 0) ++choice;
        return *choice == NULL;
    }
    for (uint32_t i = 0; i < v->n && (s->flags & CATENA_ATTR_RANGED) != 0; ++i) {
        const double f = v->kind == CATENA_ATTR_FLOATS ? v->v.floats[i] : v->v.f;
        const int64_t n = v->kind == CATENA_ATTR_INTS ? v->v.ints[i] : v->v.i;
        if (v->kind == CATENA_ATTR_FLOAT || v->kind == CATENA_ATTR_FLOATS
                ? !(s->lo.v.f <= f && f <= s->hi.v.f)
                : n < s->lo.v.i || n > s->hi.v.i)
            return 1;
    }
    return 0;
}
/* Fills values in the order of the schema, from attrs or defaults. */
static catena_status bind(const catena_function *f, const catena_named_value *attrs,
                          uint32_t n_attrs, catena_value *values) {
    uint64_t given = 0;
    for (uint32_t i = 0; i < n_attrs; ++i) {
        const char *expected = NULL, *got = "another";
        uint32_t at = 0;
        while (at < f->n_attrs && strcmp(f->attrs[at]->name, attrs[i].name) != 0) ++at;
        if (at == f->n_attrs) expected = "a name of the function's";
        else if ((given >> at & 1) != 0) expected = "once", got = "twice";
        else if (refused(f->attrs[at], &attrs[i].value))
            expected = "a value of its kind, range and choices";
        if (expected != NULL)
            return failed(CATENA_E_INVALID, "[%s] attribute '%s': expected %s, got %s", f->name,
                          attrs[i].name, expected, got);
        values[at] = attrs[i].value;
        given |= (uint64_t)1 << at;
    }
    for (uint32_t i = 0; i < f->n_attrs; ++i) {
        if ((given >> i & 1) != 0) continue;
        if ((f->attrs[i]->flags & CATENA_ATTR_REQUIRED) != 0)
            return failed(CATENA_E_INVALID, "[%s] attribute '%s': expected a value, got none",
                          f->name, f->attrs[i]->name);
        values[i] = f->attrs[i]->def;
    }
    return CATENA_OK;
}
minihost_call *minihost_begin(const char *name, const catena_named_value *attrs, uint32_t n_attrs) {
    const catena_callable *found;
    *error = '\0';
    if (find(NULL, name, &found) != CATENA_OK) return NULL;
    minihost_call *c = calloc(1, sizeof *c);
    if (c == NULL) return no_memory(), NULL;
    c->function = (const catena_function *)found;
    c->n_x = c->function->n_inputs;
    c->n_y = c->function->n_outputs;
    if (bind(c->function, attrs, n_attrs, c->attrs) == CATENA_OK) return c;
    free(c);
    return NULL;
}
void minihost_end(minihost_call *c) {
    minihost_array *lists[] = {c->x, c->y, c->gy, c->gx, c->saved};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; ++k)
        for (uint32_t i = 0; i < CATENA_MAX_PORTS; ++i) free(lists[k][i].data);
    free(c);
}

/* Sets the shapes and dtypes of y; allocates no memory. */
static catena_status infer(minihost_call *c) {
    const catena_function *f = c->function;
    const catena_meta *x[CATENA_MAX_PORTS];
    catena_meta *y[CATENA_MAX_PORTS];
    catena_ctx ctx = {0, NULL};
    if (f->infer == NULL)
        return failed(CATENA_E_UNSUPPORTED, "[%s] expected kernels, got a composition alone",
                      f->name);
    if (c->n_x > f->n_inputs &&
        (f->n_inputs == 0 || (minihost_port(f, c->n_x)->flags & CATENA_PORT_VARIADIC) == 0))
        return failed(CATENA_E_INVALID, "[%s] inputs: expected %u, got %u", f->name,
                      (unsigned)f->n_inputs, (unsigned)c->n_x);
    for (uint32_t i = 0; i < c->n_x; ++i) {
        x[i] = c->x[i].data == NULL ? NULL : &c->x[i].meta;
        if (x[i] == NULL && (minihost_port(f, i)->flags & CATENA_PORT_OPTIONAL) == 0)
            return failed(CATENA_E_INVALID, "[%s] %s: expected an array, got none", f->name,
                          minihost_port(f, i)->name);
    }
    for (uint32_t i = 0; i < c->n_y; ++i) {
        y[i] = &c->y[i].meta;
        y[i]->struct_size = sizeof(catena_meta);
        y[i]->device_type = 1; /* the CPU, if the function has no inputs to infer it from */
    }
    return f->infer(&ctx, c->attrs, x, c->n_x, y, c->n_y);
}

/* Whether the kernel has a row of dtypes, one for each type variable in order of first use, that
 * matches the arrays. */
static int serves(const minihost_call *c, const catena_kernel *k) {
    const catena_function *f = c->function;
    const char *vars[CATENA_MAX_TYPE_VARS];
    catena_dtype dtypes[CATENA_MAX_TYPE_VARS];
    int known[CATENA_MAX_TYPE_VARS] = {0};
    uint32_t n = 0;
    if (strcmp(k->function, f->name) != 0 || strcmp(k->device, "cpu") != 0 || *k->isa != '\0' ||
        f->version < k->version_min || f->version > k->version_max || k->n_saved > CATENA_MAX_PORTS)
        return 0;
    for (uint32_t i = 0; i < c->n_x + c->n_y; ++i) {
        const minihost_array *a = i < c->n_x ? &c->x[i] : &c->y[i - c->n_x];
        const char *var = (i < c->n_x ? minihost_port(f, i) : f->outputs[i - c->n_x])->type_var;
        uint32_t v = 0;
        while (v < n && strcmp(vars[v], var) != 0) ++v;
        if (v == n) vars[n++] = var;
        if (i < c->n_x && a->data == NULL) continue;
        if (known[v] && memcmp(&dtypes[v], &a->meta.dtype, sizeof *dtypes) != 0) return 0;
        known[v] = 1;
        dtypes[v] = a->meta.dtype;
    }
    for (const catena_dtype *row = k->types; row < k->types + k->n_types * n; row += n) {
        uint32_t v = 0;
        while (v < n && (!known[v] || memcmp(&dtypes[v], &row[v], sizeof *row) == 0)) ++v;
        if (v == n) return 1;
    }
    return 0;
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
            .nbytes = bytes_of(a),
            .align_log2 = 6};
    }
}
/* The set of inputs in a function's or a kernel's retain_x: CATENA_RETAIN_REST is all from the last. */
static uint64_t retained(const catena_function *f, uint64_t retain_x) {
    if ((retain_x & CATENA_RETAIN_REST) == 0 || f->n_inputs == 0) return retain_x;
    return retain_x | ~(uint64_t)0 << (f->n_inputs - 1);
}
/* Runs a kernel. CATENA_E_UNSUPPORTED means that another kernel may support the call. */
static catena_status run(minihost_call *c, const catena_kernel *k) {
    const catena_function *f = c->function;
    const int backward = k->phase == CATENA_PHASE_BACKWARD;
    const uint64_t all = ~(uint64_t)0;
    catena_tensor tensors[5][CATENA_MAX_PORTS];
    catena_tensor *x[CATENA_MAX_PORTS], *y[CATENA_MAX_PORTS], *gy[CATENA_MAX_PORTS];
    catena_tensor *gx[CATENA_MAX_PORTS], *saved[CATENA_MAX_PORTS];
    catena_meta metas[CATENA_MAX_PORTS], *meta_list[CATENA_MAX_PORTS];
    uint8_t req[CATENA_MAX_PORTS] = {0};
    uint64_t targets = 0;
    lend(tensors[0], x, c->x, c->n_x,
         backward ? retained(f, k->variant != NULL ? k->retain_x : f->retain_x) : all,
         CATENA_TENSOR_READONLY);
    lend(tensors[1], y, c->y, c->n_y,
         backward ? (k->variant != NULL ? k->retain_y : f->retain_y) : all,
         backward ? +CATENA_TENSOR_READONLY : 0u);
    lend(tensors[2], gy, c->gy, c->n_y, all, CATENA_TENSOR_READONLY);
    lend(tensors[3], gx, c->gx, c->n_x, all, 0);
    for (uint32_t i = 0; i < c->n_x; ++i)
        if (!backward && (minihost_port(f, i)->flags & CATENA_PORT_MUTATED) != 0)
            tensors[0][i].flags &= ~(uint32_t)CATENA_TENSOR_READONLY;
    for (uint32_t i = 0; i < (backward ? c->n_x : c->n_y); ++i) {
        if (backward && c->gx[i].data == NULL) continue;
        req[i] = CATENA_REQ_WRITE;
        if (backward) targets |= (uint64_t)1 << i;
    }
    catena_call call = {.struct_size = sizeof call,
                        .flags = CATENA_CALL_TRAIN,
                        .phase = k->phase,
                        .n_saved = k->n_saved,
                        .function = f,
                        .attrs = c->attrs,
                        .n_x = c->n_x,
                        .n_y = c->n_y,
                        .x = (const catena_tensor *const *)x,
                        .y = y,
                        .gy = (const catena_tensor *const *)gy,
                        .gx = gx,
                        .saved = saved,
                        .req = req,
                        .targets = &targets};
    catena_plan plan = {.struct_size = sizeof plan, .n_saved = k->n_saved, .saved = meta_list};
    catena_ctx ctx = {0, NULL};
    catena_status status = CATENA_OK;
    memset(metas, 0, sizeof metas);
    for (uint32_t i = 0; i < k->n_saved; ++i) {
        meta_list[i] = &metas[i];
        metas[i].struct_size = sizeof *metas;
    }
    if (k->supports != NULL && k->supports(&ctx, &call) == 0) return CATENA_E_UNSUPPORTED;
    if (k->plan != NULL) status = k->plan(&ctx, &call, &plan);
    for (uint32_t i = 0; status == CATENA_OK && !backward && i < k->n_saved; ++i)
        if (minihost_allocate(&c->saved[i], &metas[i]) == NULL) status = no_memory();
    lend(tensors[4], saved, c->saved, k->n_saved, all, 0);
    if (status == CATENA_OK && plan.scratch_bytes > 0 &&
        posix_memalign(&call.scratch, 64, plan.scratch_bytes) != 0)
        status = no_memory();
    call.scratch_bytes = plan.scratch_bytes;
    if (status != CATENA_OK) return status;
    status = k->run(&ctx, &call);
    free(call.scratch);
    /* Kernels must not decline a call in run(): no other kernel is tried then. */
    return status == CATENA_E_UNSUPPORTED ? CATENA_E_INTERNAL : status;
}
/* Runs the eligible kernel of the highest priority that supports the call. */
static catena_status run_best(minihost_call *c, int32_t phase) {
    const catena_kernel *tried[64];
    for (uint32_t n = 0; n < sizeof tried / sizeof *tried; ++n) {
        const catena_kernel *best = NULL;
        const catena_plugin *from = NULL;
        for (uint32_t p = 0; p < n_plugins; ++p)
            for (uint32_t i = 0; i < plugins[p]->n_kernels; ++i) {
                const catena_kernel *k = plugins[p]->kernels[i];
                uint32_t at = 0;
                while (at < n && tried[at] != k) ++at;
                if (at < n || k->phase != phase || !serves(c, k)) continue;
                /* Only kernels of the same plugin and variant may read saved state. */
                if (phase == CATENA_PHASE_BACKWARD && k->variant != NULL &&
                    (plugins[p] != c->plugin || c->kernel->variant == NULL ||
                     strcmp(k->variant, c->kernel->variant) != 0))
                    continue;
                if (best == NULL || k->priority > best->priority) best = k, from = plugins[p];
            }
        if (best == NULL) break;
        const catena_status status = run(c, best);
        if (status != CATENA_E_UNSUPPORTED) {
            if (phase == CATENA_PHASE_FORWARD) c->kernel = best, c->plugin = from;
            return status;
        }
        *error = '\0';
        tried[n] = best;
    }
    return failed(CATENA_E_UNSUPPORTED, "[%s] kernel: expected one for this call, got none",
                  c->function->name);
}
catena_status minihost_forward(minihost_call *c) {
    *error = '\0';
    const catena_status status = infer(c);
    if (status != CATENA_OK) return status;
    for (uint32_t i = 0; i < c->n_y; ++i)
        if (minihost_allocate(&c->y[i], &c->y[i].meta) == NULL) return no_memory();
    if ((c->function->flags & CATENA_FUNCTION_VIEW) == 0) return run_best(c, CATENA_PHASE_FORWARD);
    memcpy(c->y[0].data, c->x[0].data, bytes_of(&c->y[0]));
    return CATENA_OK;
}

/* ---- gradients ---- */

static catena_status allocate_gradients(minihost_call *c, uint64_t *targets) {
    *error = '\0';
    *targets = 0;
    if ((c->function->flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0)
        return failed(CATENA_E_NOT_DIFFERENTIABLE, "[%s] it is not differentiable",
                      c->function->name);
    for (uint32_t i = 0; i < c->n_x; ++i) {
        const uint8_t code = c->x[i].meta.dtype.code;
        if (c->x[i].data == NULL || (code != CATENA_CODE_FLOAT && code != CATENA_CODE_BFLOAT) ||
            (minihost_port(c->function, i)->flags & CATENA_PORT_NON_DIFFERENTIABLE) != 0)
            continue;
        if (minihost_allocate(&c->gx[i], &c->x[i].meta) == NULL) return no_memory();
        *targets |= (uint64_t)1 << i;
    }
    return CATENA_OK;
}
catena_status minihost_compose(minihost_call *c) {
    const catena_function *f = c->function;
    catena_ctx ctx = {1, NULL};
    catena_var vars[3][CATENA_MAX_PORTS];
    catena_var *x[CATENA_MAX_PORTS], *y[CATENA_MAX_PORTS], *gy[CATENA_MAX_PORTS];
    catena_var *gx[CATENA_MAX_PORTS] = {NULL};
    const catena_meta *metas[CATENA_MAX_PORTS];
    uint64_t targets;
    catena_status status = allocate_gradients(c, &targets);
    if (status != CATENA_OK) return status;
    if (f->gradient == NULL)
        return failed(CATENA_E_NOT_DIFFERENTIABLE, "[%s] its gradient is no composition", f->name);
    for (uint32_t i = 0; i < c->n_x; ++i) {
        vars[0][i].array = c->x[i];
        metas[i] = c->x[i].data == NULL ? NULL : &c->x[i].meta;
        x[i] = metas[i] != NULL && (retained(f, f->retain_x) >> i & 1) != 0 ? &vars[0][i] : NULL;
    }
    for (uint32_t i = 0; i < c->n_y; ++i) {
        vars[1][i].array = c->y[i], vars[2][i].array = c->gy[i];
        y[i] = (f->retain_y >> i & 1) != 0 ? &vars[1][i] : NULL;
        gy[i] = c->gy[i].data != NULL ? &vars[2][i] : NULL;
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
    status = f->gradient(&ctx, &call);
    for (uint32_t i = 0; status == CATENA_OK && i < c->n_x; ++i) {
        const size_t bytes = c->gx[i].data == NULL ? 0 : bytes_of(&c->gx[i]);
        if (bytes > 0 && gx[i] == NULL) memset(c->gx[i].data, 0, bytes);
        else if (bytes > 0 && bytes_of(&gx[i]->array) == bytes)
            memcpy(c->gx[i].data, gx[i]->array.data, bytes);
        else if (bytes > 0)
            status = failed(CATENA_E_SHAPE, "[%s] gradient of %s: expected its shape, got another",
                            f->name, minihost_port(f, i)->name);
    }
    while (ctx.vars != NULL) {
        catena_var *next = ctx.vars->next;
        free(ctx.vars->array.data);
        free(ctx.vars);
        ctx.vars = next;
    }
    return status;
}
catena_status minihost_backward(minihost_call *c) {
    uint64_t targets;
    catena_status status = allocate_gradients(c, &targets);
    if (status == CATENA_OK) status = run_best(c, CATENA_PHASE_BACKWARD);
    if (status != CATENA_E_UNSUPPORTED || c->function->gradient == NULL) return status;
    return minihost_compose(c);
}
