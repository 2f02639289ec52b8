// normalization.catena: values brought to a common scale.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.normalization", "0.1.0");
