// The gradient of w is written only if that of x is requested as well.
// expect: gradients/targets
#define GW_ALONE 0
#include "product.h"
SPOIL { make_product(); }
