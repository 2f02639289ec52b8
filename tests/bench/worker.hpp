// One side of a comparison: a process of its own that measures a block of work when asked.
#pragma once

#include "work.hpp"

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace catena_bench {

struct Block {
    double seconds = 0;  // of one call: the median over the block's runs; of memory: bytes
    // The time that threads were ready and had no processor, as a share of the block.
    double waiting = 0;
};

// Sides do not share a process: each has its own environment, OpenBLAS and threads, and while one
// measures the others sleep in read(). Fork before anything is initialised or any thread started.
class Worker {
public:
    // prepare: runs in the new process, sets its environment. block: seconds of one block.
    Worker(std::function<void()> prepare, MakeWorks make, int threads, double block);
    Worker(Worker&& other) noexcept
        : pid_(std::exchange(other.pid_, 0)),
          ask_(std::exchange(other.ask_, nullptr)),
          answer_(std::exchange(other.answer_, nullptr)) {}
    ~Worker();

    // Measures one block. The first of a work finds out how many runs fill one, and warms up.
    // Throws std::runtime_error with the side's words if it cannot.
    Block measure(const std::string& name);

private:
    pid_t pid_ = 0;
    std::FILE* ask_ = nullptr;
    std::FILE* answer_ = nullptr;
};

}  // namespace catena_bench
