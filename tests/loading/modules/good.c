/* A valid module. */
#define MODULE_ID "org.example.good"
#include "../../bad_plugins/module.h"

GOOD("good")
