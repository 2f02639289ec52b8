// An output's gradient that did not come is taken for ones.
// expect: gradients/missing
#define MISSING_GS 1
#include "product.h"
SPOIL { make_product(); }
