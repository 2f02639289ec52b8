/* A function with a name that nobody can type. */
#define MODULE_ID "org.example.bad_name"
#include "../module.h"

GOOD("bad name!")
