/* Composes swish's gradient while memory for the n-th variable is missing: the call must fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "minihost.h"

static int left = -1; /* variables that can still be allocated; < 0: no limit */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
    if (bytes == sizeof(catena_var) && left >= 0 && left-- == 0) return NULL;
    return __real_malloc(bytes);
}

/* usage: memory_test PLUGIN..., swish and the plugins of its composed gradient */
int main(int argc, char **argv) {
    for (int i = 1; i < argc; ++i)
        if (minihost_load(argv[i], NULL) == NULL) return puts(minihost_error()), 2;
    minihost_call *c = minihost_begin("org.example.swish", NULL, 0);
    if (c == NULL) return puts(minihost_error()), 2;
    const int64_t shape[] = {2};
    float *x = minihost_floats(&c->x[0], 1, shape);
    x[0] = 1, x[1] = 2;
    if (minihost_forward(c) != CATENA_OK) return puts(minihost_error()), 2;
    float *gy = minihost_floats(&c->gy[0], 1, shape);
    gy[0] = gy[1] = 1;

    int n = 0, failures = 0;
    for (;; ++n) {
        left = n;
        const catena_status status = minihost_compose(c);
        const int ended = left < 0;
        left = -1;
        if (!ended) {
            if (status != CATENA_OK) ++failures, puts(minihost_error());
            break;
        }
        if (status == CATENA_E_NOMEM && strcmp(minihost_error(), "out of memory") == 0) continue;
        printf("memory for %d variables: status %d, %s\n", n, (int)status, minihost_error());
        ++failures;
    }
    minihost_end(c);
    if (n == 0) puts("expected a gradient that makes variables, got none");
    return failures == 0 && n > 0 ? 0 : 1;
}
