// expect: schema/attributes load/host
#include "module.h"
SPOIL {
    attr_scale.lo.v.f = 2;
    attr_scale.hi.v.f = 3;
    the_examples[1] = NULL;
}
