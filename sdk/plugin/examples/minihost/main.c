/* catena-minihost: shows a plugin's functions, or runs one of them.
 *
 * usage: catena-minihost [--with PLUGIN]... [--compose] PLUGIN [FUNCTION [NAME=NUMBER | SHAPE]...]
 *
 * SHAPE: extents, as in 2x3, "" for 0-d; "-" for a missing input. Input i holds i + 0.1,
 * i + 0.2, ... in float32.
 * --with: loads a plugin whose functions gradients call. --compose: uses no gradient kernels. */
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "minihost.h"

static void print(const char *what, const char *name, const minihost_array *a) {
    if (a->data == NULL || a->meta.dtype.bits != 32 || a->meta.dtype.code != CATENA_CODE_FLOAT)
        return;
    printf("%s%s (", what, name);
    for (int32_t d = 0; d < a->meta.ndim; ++d)
        printf("%s%lld", d == 0 ? "" : "x", (long long)a->meta.shape[d]);
    printf(") =");
    for (int64_t i = 0, n = minihost_size(a); i < n; ++i)
        printf(" %.6g", (double)((const float *)a->data)[i]);
    printf("\n");
}

static int fail(minihost_call *c) {
    fprintf(stderr, "minihost: %s\n", minihost_error());
    if (c != NULL) minihost_end(c);
    return 1;
}
static int usage(const char *why) {
    fprintf(stderr,
            "minihost: %s\nusage: catena-minihost [--with PLUGIN]... [--compose] PLUGIN "
            "[FUNCTION [NAME=NUMBER | SHAPE]...]\n",
            why);
    return 2;
}

static int show(const catena_plugin *plugin) {
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
    return 0;
}

/* Parses the text by the attribute's kind; returns 0 if it is no number. begin() checks names. */
static int number(const char *function, const char *name, const char *text, catena_value *value) {
    const catena_function *f = minihost_function(function);
    *value = (catena_value){.kind = CATENA_ATTR_INT, .n = 1};
    for (uint32_t i = 0; f != NULL && i < f->n_attrs; ++i) {
        if (strcmp(f->attrs[i]->name, name) != 0) continue;
        char *end;
        const double x = strtod(text, &end);
        value->kind = f->attrs[i]->kind;
        if (end == text || *end != '\0' || isspace((unsigned char)*text) || fabs(x) > DBL_MAX)
            return 0;
        if (value->kind == CATENA_ATTR_FLOAT) return value->v.f = x, 1;
        value->v.i = fabs(x) < 0x1p53 ? (int64_t)x : 0;
        return value->kind <= CATENA_ATTR_BOOL && (double)value->v.i == x;
    }
    return 1;
}

static int fill(minihost_array *a, uint32_t port, const char *text) {
    int64_t shape[CATENA_MAX_NDIM];
    int32_t ndim = 0;
    for (int more = *text != '\0'; more;) {
        char *end;
        if (ndim == CATENA_MAX_NDIM || !isdigit((unsigned char)*text)) return 0;
        errno = 0;
        shape[ndim++] = strtoll(text, &end, 10);
        more = *end == 'x';
        if (errno != 0 || (!more && *end != '\0')) return 0;
        text = end + 1;
    }
    float *data = minihost_floats(a, ndim, shape);
    for (int64_t i = 0; data != NULL && i < minihost_size(a); ++i)
        data[i] = (float)port + 0.1f * (float)(i + 1);
    return data != NULL;
}

int main(int argc, char **argv) {
    catena_named_value attrs[CATENA_MAX_ATTRS];
    uint32_t n_attrs = 0, n_x = 0;
    int at = 1, composed = 0;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; ++at) {
        if (strcmp(argv[at], "--compose") == 0) composed = 1;
        else if (strcmp(argv[at], "--with") != 0 || ++at == argc) return usage(argv[at - 1]);
        else if (minihost_load(argv[at], NULL) == NULL) return fail(NULL);
    }
    if (at == argc) return usage("expected a plugin, got none");
    const catena_plugin *plugin = minihost_load(argv[at], NULL);
    if (plugin == NULL) return fail(NULL);
    if (++at == argc) return show(plugin);

    const char *function = argv[at++];
    for (int i = at; i < argc; ++i) {
        char *equals = strchr(argv[i], '=');
        if (equals == NULL) continue;
        *equals = '\0';
        if (n_attrs == CATENA_MAX_ATTRS ||
            !number(function, argv[i], equals + 1, &attrs[n_attrs].value))
            return usage("expected an attribute that is a number");
        attrs[n_attrs++].name = argv[i];
        argv[i] = NULL;
    }
    minihost_call *c = minihost_begin(function, attrs, n_attrs);
    if (c == NULL) return fail(NULL);
    for (; at < argc; ++at) {
        if (argv[at] == NULL) continue;
        if (n_x == CATENA_MAX_PORTS ||
            (strcmp(argv[at], "-") != 0 && !fill(&c->x[n_x], n_x, argv[at]))) {
            minihost_end(c);
            return usage("expected a shape, as in 2x3");
        }
        ++n_x;
    }
    if (n_x > c->n_x) c->n_x = n_x;
    if (minihost_forward(c) != CATENA_OK) return fail(c);
    const catena_function *f = c->function;
    for (uint32_t i = 0; i < c->n_y; ++i) print("", f->outputs[i]->name, &c->y[i]);

    if ((f->flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) == 0) {
        for (uint32_t i = 0; i < c->n_y; ++i) { /* the gradients of the sum of all outputs */
            if (c->y[i].meta.dtype.code != CATENA_CODE_FLOAT || c->y[i].meta.dtype.bits != 32 ||
                (f->outputs[i]->flags & CATENA_PORT_HIDDEN) != 0)
                continue;
            float *gy = minihost_allocate(&c->gy[i], &c->y[i].meta);
            for (int64_t k = 0; gy != NULL && k < minihost_size(&c->gy[i]); ++k) gy[k] = 1;
        }
        if ((composed ? minihost_compose(c) : minihost_backward(c)) != CATENA_OK) return fail(c);
        for (uint32_t i = 0; i < c->n_x; ++i)
            print("gradient of ", minihost_port(f, i)->name, &c->gx[i]);
    }
    minihost_end(c);
    return 0;
}
