// optimizer.catena: updates of parameters, and of their gradients.
#include <catena/plugin.hpp>

CATENA_PLUGIN("org.catena.optimizer", "0.1.0");
