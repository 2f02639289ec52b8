/* Runs swish on an older host and on this host. Each table ends at an inaccessible page, so that a
 * plugin that reads beyond struct_size crashes. */
#define _DEFAULT_SOURCE
#define main minihost_main
#include "../minihost.c"
#undef main

#include <sys/mman.h>
#include <unistd.h>

static int failures;

static void expect(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "table_test: %s: %s\n", what, error);
    ++failures;
}

/* Returns a table of struct_size bytes before an inaccessible page. */
static const catena_host *at_end_of_page(uint32_t struct_size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) exit(2);
    catena_host *host = (void *)(pages + page - struct_size);
    memcpy(host, &table, struct_size);
    host->struct_size = struct_size;
    return host;
}

static void run_swish(const catena_callable *swish) {
    catena_ctx c;
    const catena_meta shape = {sizeof shape, .ndim = 1, .dtype = {CATENA_CODE_FLOAT, 32, 1},
                               .device_type = 1, .shape = {3}};
    begin(&c, swish);
    expect(fill(&shape, -2, 1, &c.x[0]) == CATENA_OK, "allocate");
    expect(forward(&c) == CATENA_OK, "forward");
    if (failures > 0) return;
    const float *y = c.y[0]->tensor.dl.data;
    for (int i = 0; i < 3; ++i) {
        const float x = (float)i - 1;
        expect(fabsf(y[i] - x / (1 + expf(-x))) < 1e-6f, "a value of swish");
    }
}

/* Sets attributes of a call of swish until one is refused, and returns why. */
static const char *refusal(const catena_callable *swish, const catena_named_value *attrs,
                           int n_attrs) {
    catena_ctx c;
    begin(&c, swish);
    for (int i = 0; i < n_attrs; ++i)
        if (set(&c, attrs[i].name, &attrs[i].value) != CATENA_OK) return error;
    return "it was not refused";
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const catena_callable *swish;
    /* The table without its last fields, then the whole table. */
    const uint32_t sizes[] = {offsetof(catena_host, get_extension), sizeof(catena_host)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        const catena_host *host = at_end_of_page(sizes[i]);
        const catena_plugin *plugin;
        expect(host->struct_size == sizes[i], "struct_size");
        expect(memcmp((const char *)host + 4, (const char *)&table + 4, sizes[i] - 4) == 0,
               "the rest of the table");
        expect(load(argv[1], host, &plugin) == CATENA_OK, "load");
        if (find(NULL, "org.example.swish", &swish) != CATENA_OK) return puts(error), 2;
        run_swish(swish);
    }
    const catena_callable *none;
    expect(find(NULL, "org.example.swich", &none) != CATENA_OK &&
               strcmp(error, "no plugin has the function org.example.swich") == 0,
           "a function that is not there");
    const catena_named_value wrong = {"beta", {CATENA_ATTR_INT, 1, {.i = 1}}};
    expect(strcmp(refusal(swish, &wrong, 1),
                  "[org.example.swish] attribute 'beta': expected a value of its kind, range and "
                  "choices, got another") == 0,
           "an attribute of another kind");
    const catena_named_value unknown[] = {{"beta", {CATENA_ATTR_FLOAT, 1, {.f = 2}}},
                                          {"gamma", {CATENA_ATTR_FLOAT, 1, {.f = 2}}}};
    expect(strcmp(refusal(swish, unknown, 2),
                  "[org.example.swish] attribute 'gamma': expected a name of the function's, got "
                  "another") == 0,
           "an attribute that it does not have");
    const catena_named_value twice[] = {unknown[0], unknown[0]};
    expect(strcmp(refusal(swish, twice, 2),
                  "[org.example.swish] attribute 'beta': expected once, got twice") == 0,
           "an attribute that is given twice");
    release();
    return failures == 0 ? 0 : 1;
}
