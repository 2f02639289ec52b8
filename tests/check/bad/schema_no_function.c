// A kernel of a function that does not exist.
// expect: schema/kernels
// says: expected a function of the plugin, of catena's own or of --with
// options: --only schema
#include "module.h"
SPOIL { backward32.function = "org.example.sqaure"; }
