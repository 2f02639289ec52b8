// expect: static/unique
// exports: all
#include "module.h"
__asm__(
    ".pushsection .data\n"
    ".globl shared_counter\n"
    ".type shared_counter, %gnu_unique_object\n"
    ".size shared_counter, 4\n"
    "shared_counter: .long 0\n"
    ".popsection\n");
SPOIL {}
