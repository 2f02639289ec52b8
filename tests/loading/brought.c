/* A library that a plugin needs. Its constructor appends MARK to the file $CATENA_TEST_MARK. */
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
