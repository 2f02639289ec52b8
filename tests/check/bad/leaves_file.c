// expect: load/files
#include <fcntl.h>

#include "module.h"
SPOIL { the_plugin.reserved = open("/dev/null", O_RDONLY) < 0; }
