// All optimizers that come with catena.
#pragma once

#include <catena/optimizers/ada_delta.hpp>
#include <catena/optimizers/ada_grad.hpp>
#include <catena/optimizers/adam.hpp>
#include <catena/optimizers/momentum_sgd.hpp>
#include <catena/optimizers/rmsprop.hpp>
#include <catena/optimizers/sgd.hpp>
