// Training with several processes, or several threads of a process.
#pragma once

#include <catena/distributed/checkpoints.hpp>
#include <catena/distributed/communicator.hpp>
#include <catena/distributed/data.hpp>
#include <catena/distributed/functions.hpp>
#include <catena/distributed/links.hpp>
#include <catena/distributed/multi_node_optimizer.hpp>
