// The end of the file, with the section header table, is missing; the file can still be mapped.
// expect: static/file load/host
// cut: 100
#include "module.h"
SPOIL {}
