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
    std::string way;  // how the side computed it, if it chose between several ways
};

// What a side's process does: for each line of `questions`, the name of a work, it prints a line
// "SECONDS WAITING WAY" or, if it fails, "? MESSAGE".
using Serve = std::function<void(std::FILE* questions, std::FILE* answers)>;

// prepare: runs first in the new process and sets its environment. block: seconds per block.
Serve serve(std::function<void()> prepare, MakeWorks make, int threads, double block);
// The same by a program, which is called with two file descriptors, threads and block.
Serve serve_by_program(std::function<void()> prepare, std::vector<std::string> command, int threads,
                       double block);

// Each side has its own process, environment, OpenBLAS and threads. While one measures, the others
// sleep in read(). Create Workers before anything is initialized or any thread is started.
class Worker {
public:
    explicit Worker(const Serve& serve);
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
