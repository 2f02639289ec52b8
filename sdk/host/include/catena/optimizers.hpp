// All optimizers that come with catena.
#pragma once

#include <catena/optimizers/adam.hpp>
#include <catena/optimizers/sgd.hpp>
