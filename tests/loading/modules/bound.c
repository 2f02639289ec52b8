/* A valid module with the id ID for the devices DEVICES. */
#define MODULE_ID ID
#define MODULE_DEVICES DEVICES
#include "../../bad_plugins/module.h"

GOOD("bound")
