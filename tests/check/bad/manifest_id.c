// expect: static/manifest
#define OWN_MANIFEST
#include "module.h"
MANIFEST("My Plugin", "1.0.0", "cpu")
SPOIL {}
