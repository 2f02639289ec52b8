/* The host's table, plugins, and arrays. Uses one thread; never unloads a plugin. */
#define _POSIX_C_SOURCE 200112L
#include "internal.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const catena_plugin *minihost_plugins[MINIHOST_MAX_PLUGINS];
uint32_t minihost_n_plugins;
static char error[1024];
static uint64_t drawn;

const char *minihost_error(void) { return *error == '\0' ? "it gave no reason" : error; }
void minihost_begin_call(void) { *error = '\0'; }

/* ---- the table ---- */

/* Keeps the first error text of a call; minihost_begin_call() clears it. */
static catena_status CATENA_CALL fail(catena_ctx *ctx, catena_status status, const char *text) {
    (void)ctx;
    if (*error == '\0') snprintf(error, sizeof error, "%s", text);
    return status;
}
catena_status minihost_fail(catena_status status, const char *format, ...) {
    char text[sizeof error];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail(NULL, status, text);
}
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
/* Makes each list once and never frees it. Makes a new list after more plugins are loaded. */
static const void *const *CATENA_CALL extensions(catena_ctx *ctx, const char *id) {
    struct list {
        char id[64];
        const char *device;
        uint32_t of_plugins;
        struct list *next;
        const void *tables[16];
        int32_t priorities[16];
    };
    static struct list *lists;
    static const void *const none[] = {NULL};
    const char *device = ctx == NULL ? "" : ctx->device;
    struct list *l = lists;
    while (l != NULL && (strcmp(l->id, id) != 0 || strcmp(l->device, device) != 0 ||
                         l->of_plugins != minihost_n_plugins))
        l = l->next;
    if (l != NULL) return l->tables;
    if (strlen(id) >= sizeof l->id || (l = calloc(1, sizeof *l)) == NULL) return none;
    strcpy(l->id, id);
    l->device = device;
    l->of_plugins = minihost_n_plugins;
    for (uint32_t p = 0, n = 0; p < minihost_n_plugins; ++p)
        for (uint32_t i = 0; i < minihost_plugins[p]->n_extensions && n < 15; ++i) {
            const catena_extension *e = minihost_plugins[p]->extensions[i];
            if (strcmp(e->id, id) != 0 || strcmp(e->device, device) != 0) continue;
            uint32_t at = n++;
            for (; at > 0 && l->priorities[at - 1] < e->priority; --at) {
                l->tables[at] = l->tables[at - 1];
                l->priorities[at] = l->priorities[at - 1];
            }
            l->tables[at] = e->table;
            l->priorities[at] = e->priority;
        }
    l->next = lists;
    lists = l;
    return l->tables;
}
static catena_status CATENA_CALL find(catena_ctx *ctx, const char *name,
                                      const catena_callable **out) {
    static catena_callable *callables;
    const catena_function *f = minihost_function(name);
    (void)ctx;
    if (f == NULL) return minihost_fail(CATENA_E_INVALID, "no plugin has the function %s", name);
    catena_callable *c = callables;
    while (c != NULL && c->function != f) c = c->next;
    if (c == NULL) {
        c = malloc(sizeof *c);
        if (c == NULL) return minihost_fail(CATENA_E_NOMEM, "out of memory");
        c->function = f;
        c->next = callables;
        callables = c;
    }
    *out = c;
    return CATENA_OK;
}

static catena_var *keep(catena_ctx *ctx, minihost_array *array) {
    catena_var *var = malloc(sizeof *var);
    if (var == NULL) return NULL;
    var->array = *array;
    var->next = ctx->vars;
    ctx->vars = var;
    array->data = NULL;
    return var;
}
static catena_status CATENA_CALL call(catena_ctx *ctx, const catena_callable *callable,
                                      const catena_named_value *attrs, uint32_t n_attrs,
                                      catena_var *const *x, uint32_t n_x, catena_var **y,
                                      uint32_t n_y) {
    if (!ctx->in_gradient)
        return minihost_fail(CATENA_E_INVALID,
                             "[%s] call: expected within a gradient, got elsewhere",
                             callable->function->name);
    minihost_call *c = minihost_begin(callable->function->name, attrs, n_attrs);
    if (c == NULL) return CATENA_E_INVALID;
    if (n_x > CATENA_MAX_PORTS || n_y > c->n_y) {
        minihost_end(c);
        return minihost_fail(CATENA_E_INVALID, "[%s] call: expected at most its ports, got more",
                             callable->function->name);
    }
    if (n_x > c->n_x) c->n_x = n_x;
    for (uint32_t i = 0; i < n_x; ++i)
        if (x[i] != NULL) c->x[i] = x[i]->array; /* borrowed */
    catena_status status = minihost_forward(c);
    for (uint32_t i = 0; status == CATENA_OK && i < n_y; ++i)
        if ((y[i] = keep(ctx, &c->y[i])) == NULL)
            status = minihost_fail(CATENA_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < n_x; ++i) c->x[i].data = NULL;
    minihost_end(c);
    return status;
}
static catena_status CATENA_CALL meta(catena_ctx *ctx, const catena_var *var, catena_meta *out) {
    (void)ctx;
    out->ndim = var->array.meta.ndim;
    out->dtype = var->array.meta.dtype;
    out->device_type = var->array.meta.device_type;
    for (int32_t d = 0; d < out->ndim; ++d) out->shape[d] = var->array.meta.shape[d];
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
void minihost_copy_table(void *to, uint32_t struct_size) {
    memcpy(to, &table, struct_size < sizeof table ? struct_size : sizeof table);
    memcpy(to, &struct_size, sizeof struct_size); /* struct_size is the first field */
}

/* ---- plugins ---- */

const catena_plugin *minihost_load(const char *path, const catena_host *host) {
    catena_ctx ctx = {"", 0, NULL};
    minihost_begin_call();
    if (host == NULL) host = &table;
    /* dlopen() would look for a bare name in the library path. */
    char beside[FILENAME_MAX];
    const int bare = strchr(path, '/') == NULL;
    if (bare && snprintf(beside, sizeof beside, "./%s", path) >= (int)sizeof beside)
        return minihost_fail(CATENA_E_INVALID, "path of a plugin: expected a shorter one, got %s",
                             path),
               NULL;
    void *library = dlopen(bare ? beside : path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return minihost_fail(CATENA_E_INVALID, "%s", dlerror()), NULL;
    const catena_manifest *m = dlsym(library, "catena_manifest_v1");
    const catena_plugin *(CATENA_CALL * entry)(const catena_host *, catena_ctx *);
    *(void **)&entry = dlsym(library, "catena_plugin_entry_v1");
    if (m == NULL || entry == NULL || memcmp(m->magic, CATENA_MANIFEST_MAGIC, 8) != 0)
        return minihost_fail(CATENA_E_INVALID, "%s: expected a plugin of ABI 1, got none", path),
               NULL;
    if (m->abi_major != host->abi_major || m->abi_minor_needed > host->abi_minor)
        return minihost_fail(CATENA_E_INVALID, "%s: ABI: it needs %u.%u, this host has %u.%u", path,
                             (unsigned)m->abi_major, (unsigned)m->abi_minor_needed,
                             (unsigned)host->abi_major, (unsigned)host->abi_minor),
               NULL;
    const catena_plugin *p = entry(host, &ctx);
    if (p == NULL || minihost_n_plugins == MINIHOST_MAX_PLUGINS)
        return minihost_fail(CATENA_E_INVALID, "%s: %s", path, p ? "too many" : "its entry failed"),
               NULL;
    for (uint32_t i = 0; i < minihost_n_plugins; ++i)
        if (minihost_plugins[i] == p) return p;
    minihost_plugins[minihost_n_plugins++] = p;
    if (p->init != NULL && p->init(host, &ctx) != CATENA_OK) {
        --minihost_n_plugins;
        return minihost_fail(CATENA_E_INVALID, "%s: its init() failed", path), NULL;
    }
    return p;
}
const catena_function *minihost_function_at(uint32_t n) {
    for (uint32_t p = 0; p < minihost_n_plugins; n -= minihost_plugins[p++]->n_functions)
        if (n < minihost_plugins[p]->n_functions) return minihost_plugins[p]->functions[n];
    return NULL;
}
const catena_function *minihost_function(const char *name) {
    const catena_function *f;
    for (uint32_t i = 0; (f = minihost_function_at(i)) != NULL; ++i)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

/* ---- arrays ---- */

int64_t minihost_size(const minihost_array *a) {
    int64_t n = 1;
    for (int32_t d = 0; d < a->meta.ndim; ++d) n *= a->meta.shape[d];
    return n;
}
size_t minihost_bytes(const minihost_array *a) {
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
    if (posix_memalign(&a->data, 64, minihost_bytes(a) + 1) != 0) a->data = NULL;
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
