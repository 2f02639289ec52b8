// expect: nothing
#include "backend.h"
SPOIL { make_backend(); }
