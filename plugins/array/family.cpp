// array.catena: shapes, dtypes, dropout.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.array", "0.1.0");
