// connection.catena: layers with weights.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.connection", "0.1.0");
