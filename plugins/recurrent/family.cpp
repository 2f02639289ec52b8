// recurrent.catena: layers with a memory.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.recurrent", "0.1.0");
