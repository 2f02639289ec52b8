// activation.catena: nonlinearities.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.activation", "0.1.0");
