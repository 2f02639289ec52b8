// The second gradient is written together with the first one alone.
// expect: gradients/targets
#define GW_ALONE 0
#include "product.h"
SPOIL { make_product(); }
