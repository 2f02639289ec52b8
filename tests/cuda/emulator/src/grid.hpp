// Runs a grid: its blocks one after the other or on several OS threads, the threads of each as fibers.
#pragma once

#include <functional>
#include <string>

#include "emulator/types.hpp"

namespace catena_emulator {

struct Grid {
    dim3 blocks, threads;
    std::size_t shared_bytes;
    std::function<void()> body;  // one thread
};

// Empty, or why the grid was given up.
std::string run_grid(const Grid& grid);

}  // namespace catena_emulator
