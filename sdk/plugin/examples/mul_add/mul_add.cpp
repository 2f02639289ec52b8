#include "mul_add.hpp"

CATENA_PLUGIN("org.example.mul_add", "1.0.0", MulAdd);
