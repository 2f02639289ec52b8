// The host accepts examples of at most 1000 bytes.
// expect: load/host schema/examples
// says: an example of over 1000 bytes
#include "module.h"
SPOIL {
    static char text[1100] = "x=(4)";
    for (size_t i = 5; i + 1 < sizeof text; ++i) text[i] = ' ';
    the_examples[1] = text;
}
