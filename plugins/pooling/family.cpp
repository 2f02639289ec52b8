// pooling.catena: windows over images.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.pooling", "0.1.0");
