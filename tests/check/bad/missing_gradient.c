// A missing output gradient is treated as ones instead of zeros.
// expect: gradients/missing
#define MISSING_GS 1
#include "product.h"
SPOIL { make_product(); }
