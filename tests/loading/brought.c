/* A library that a plugin brings along. Its constructor says that it ran, and which one it is. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void leave_mark(void) {
    const char *file = getenv("CATENA_TEST_MARK");
    FILE *mark = file ? fopen(file, "a") : NULL;
    if (!mark) return;
    fputs(MARK "\n", mark);
    fclose(mark);
}

int brought(void);
int brought(void) { return 42; }
