// expect: schema/names load/host
#include "module.h"
SPOIL {
    port_x.name = "the x";
    the_function.examples = NULL;
}
