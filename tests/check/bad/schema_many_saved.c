// expect: schema/table
// says: n_saved: expected at most 64, got 4294967295
#include "module.h"
SPOIL {
    backward32.n_saved = 0xffffffff;
    backward32.variant = "v";
}
