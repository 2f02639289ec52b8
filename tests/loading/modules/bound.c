/* A good module, whose ID and DEVICES are given. */
#define MODULE_ID ID
#define MODULE_DEVICES DEVICES
#include "../../bad_plugins/module.h"

GOOD("bound")
