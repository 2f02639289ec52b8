// Runs a grid: its blocks in sequence or on several OS threads, the threads of a block as fibers.
#pragma once

#include <functional>
#include <string>

#include "emulator/types.hpp"

namespace catena_emulator {

struct Grid {
    dim3 blocks, threads;
    std::size_t shared_bytes;
    std::function<void()> body;  // runs one thread
};

// Returns why the grid was aborted; empty if it was not.
std::string run_grid(const Grid& grid);

}  // namespace catena_emulator
