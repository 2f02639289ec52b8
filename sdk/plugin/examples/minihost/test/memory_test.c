/* Composes swish's gradient while the n-th allocation fails: the call must fail. */
#define main minihost_main
#include "../minihost.c"
#undef main

static int left = -1; /* allocations that still succeed; < 0: no limit */

int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
    if (left >= 0 && left-- == 0) return 1;
    return __real_posix_memalign(memory, alignment, bytes);
}

/* usage: memory_test PLUGIN..., swish and the plugins of its composed gradient */
int main(int argc, char **argv) {
    const catena_plugin *plugin;
    for (int i = 1; i < argc; ++i)
        if (load(argv[i], &table, &plugin) != CATENA_OK) return puts(error), 2;
    const catena_callable *swish;
    if (find(NULL, "org.example.swish", &swish) != CATENA_OK) return puts(error), 2;
    catena_ctx c;
    begin(&c, swish);
    const catena_meta shape = {sizeof shape, .ndim = 1, .dtype = {CATENA_CODE_FLOAT, 32, 1},
                               .device_type = 1, .shape = {2}};
    if (fill(&shape, 0, 1, &c.x[0]) != CATENA_OK || forward(&c) != CATENA_OK ||
        fill(&shape, 1, 0, &c.gy[0]) != CATENA_OK)
        return puts(error), 2;

    int n = 0, failures = 0;
    for (;; ++n) {
        left = n;
        const catena_status status = backward(&c, 1);
        const int ended = left < 0;
        left = -1;
        if (!ended) {
            if (status != CATENA_OK) ++failures, puts(error);
            break;
        }
        if (status == CATENA_E_NOMEM && strcmp(error, "out of memory") == 0) continue;
        printf("memory for %d allocations: status %d, %s\n", n, (int)status, error);
        ++failures;
    }
    release();
    if (n < 2) puts("expected a gradient that makes variables, got none");
    return failures == 0 && n > 1 ? 0 : 1;
}
