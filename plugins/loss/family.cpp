// loss.catena: losses and what is measured beside them.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.loss", "0.1.0");
