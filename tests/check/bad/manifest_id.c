// expect: static/manifest load/host
// says: id: expected two or more words with dots between them, each a lower-case letter and then
#define OWN_MANIFEST
#include "module.h"
MANIFEST("My Plugin", "1.0.0", "cpu")
SPOIL {}
