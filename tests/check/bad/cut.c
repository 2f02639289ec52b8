// The end of the file is missing, where the table of sections is. It can be mapped nevertheless.
// expect: static/file load/host
// cut: 100
#include "module.h"
SPOIL {}
