// math.catena: arithmetic, comparisons, elementary functions, sums and products.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.math", "0.1.0");
