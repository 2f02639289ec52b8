#include "root_mean_square.hpp"

CATENA_PLUGIN("org.example.root_mean_square", "1.0.0", RootMeanSquare);
