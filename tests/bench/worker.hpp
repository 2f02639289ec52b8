// One side of a comparison: a separate process that measures a block of work on request.
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
    double seconds = 0;  // per call, the median of the block's runs; for memory: bytes
    // The time that threads were ready without a processor, divided by the block's time.
    double waiting = 0;
};

// Each side has its own process, environment, OpenBLAS and threads. While one measures, the others
// sleep in read(). Create Workers before anything is initialized or any thread is started.
class Worker {
public:
    // prepare: runs first in the new process and sets its environment. block: seconds per block.
    Worker(std::function<void()> prepare, MakeWorks make, int threads, double block);
    Worker(Worker&& other) noexcept
        : pid_(std::exchange(other.pid_, 0)),
          ask_(std::exchange(other.ask_, nullptr)),
          answer_(std::exchange(other.answer_, nullptr)) {}
    ~Worker();

    // Measures one block. The first block of a work determines the runs per block and warms up.
    // Throws std::runtime_error with the side's message on failure.
    Block measure(const std::string& name);

private:
    pid_t pid_ = 0;
    std::FILE* ask_ = nullptr;
    std::FILE* answer_ = nullptr;
};

}  // namespace catena_bench
