// expect: static/writable-code
// link: -Wl,--no-warn-rwx-segments
#include "module.h"
__asm__(
    ".pushsection .patched,\"awx\",%progbits\n"
    ".fill 64\n"
    ".popsection\n");
SPOIL {}
