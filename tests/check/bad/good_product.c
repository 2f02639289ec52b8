// expect: nothing
#include "product.h"
SPOIL { make_product(); }
