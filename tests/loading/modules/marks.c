/* The same id as good.c; its constructor leaves a mark: what is refused must not have run. */
#define MODULE_ID "org.example.good"
#include "../../bad_plugins/module.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void leave_mark(void) {
    const char *file = getenv("CATENA_TEST_MARK");
    FILE *mark = file ? fopen(file, "w") : NULL;
    if (mark) fclose(mark);
}
GOOD("marks")
