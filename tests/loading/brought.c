/* The library that the module needs.c brings along. */
int brought(void);
int brought(void) { return 42; }
