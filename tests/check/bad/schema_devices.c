// expect: schema/devices
#define OWN_MANIFEST
#include "module.h"
MANIFEST("org.example.bad", "1.0.0", "cpu,cuda")
SPOIL {}
