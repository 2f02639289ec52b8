/* Runs swish on an older host and on this host. Each table ends at an inaccessible page, so that a
 * plugin that reads beyond struct_size crashes. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "minihost.h"

static int failures;

static void expect(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "table_test: %s: %s\n", what, minihost_error());
    ++failures;
}

/* Returns a table of struct_size bytes before an inaccessible page. */
static const catena_host *at_end_of_page(uint32_t struct_size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) exit(2);
    catena_host *table = (void *)(pages + page - struct_size);
    memcpy(table, minihost_table(), struct_size);
    table->struct_size = struct_size;
    return table;
}

static void swish(void) {
    minihost_call *c = minihost_begin("org.example.swish", NULL, 0);
    expect(c != NULL, "begin");
    if (c == NULL) return;
    float *x = minihost_floats(&c->x[0], 1, (const int64_t[]){3});
    for (int i = 0; i < 3; ++i) x[i] = (float)i - 1;
    expect(minihost_forward(c) == CATENA_OK, "forward");
    const float *y = c->y[0].data;
    for (int i = 0; i < 3; ++i)
        expect(fabsf(y[i] - x[i] / (1 + expf(-x[i]))) < 1e-6f, "a value of swish");
    minihost_end(c);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    /* The table without its last field, then the whole table. */
    const uint32_t sizes[] = {offsetof(catena_host, get_extension), sizeof(catena_host)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        const catena_host *host = at_end_of_page(sizes[i]);
        expect(host->struct_size == sizes[i], "struct_size");
        expect(
            memcmp((const char *)host + 4, (const char *)minihost_table() + 4, sizes[i] - 4) == 0,
            "the rest of the table");
        expect(minihost_load(argv[1], host) != NULL, "load");
        swish();
    }
    expect(minihost_begin("org.example.swich", NULL, 0) == NULL &&
               strcmp(minihost_error(), "no plugin has the function org.example.swich") == 0,
           "a function that is not there");
    const catena_named_value wrong = {"beta", {CATENA_ATTR_INT, 1, {.i = 1}}};
    expect(minihost_begin("org.example.swish", &wrong, 1) == NULL &&
               strcmp(minihost_error(),
                      "[org.example.swish] attribute 'beta': expected a value of its kind, range "
                      "and choices, got another") == 0,
           "an attribute of another kind");
    const catena_named_value unknown[] = {{"beta", {CATENA_ATTR_FLOAT, 1, {.f = 2}}},
                                          {"gamma", {CATENA_ATTR_FLOAT, 1, {.f = 2}}}};
    expect(minihost_begin("org.example.swish", unknown, 2) == NULL &&
               strcmp(minihost_error(),
                      "[org.example.swish] attribute 'gamma': expected a name of the function's, "
                      "got another") == 0,
           "an attribute that it does not have");
    const catena_named_value twice[] = {unknown[0], unknown[0]};
    expect(minihost_begin("org.example.swish", twice, 2) == NULL &&
               strcmp(minihost_error(),
                      "[org.example.swish] attribute 'beta': expected once, got twice") == 0,
           "an attribute that is given twice");
    return failures == 0 ? 0 : 1;
}
