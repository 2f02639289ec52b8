// connection.catena, table of contents: layers with weights.
#include "linear.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.connection", "0.1.0", Linear);
