// Code of kernels: PTX, from fat binaries of nvcc or from a compiler at run time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "../../machine/machine.hpp"
#include "api.hpp"

namespace catena_emulator {

class Code {
public:
    // Null if data is neither a fat binary nor PTX, which ends with a zero.
    static std::shared_ptr<Code> read(const void* data);

    // Finds a kernel. Reads and parses the PTX on the first call: the fat binary must exist until then.
    cudaError_t find(const std::string& name, const catena_machine::Kernel** kernel);
    const char* text();  // "": it has none that this device can run

private:
    cudaError_t parse();

    std::mutex mutex_;
    const void* fat_binary_ = nullptr;
    std::string ptx_;
    std::optional<catena_machine::Module> module_;
    std::optional<cudaError_t> error_;  // of parse(), once it was called
};

}  // namespace catena_emulator

// A kernel of a module or of a library.
struct CUkern_st {
    std::shared_ptr<catena_emulator::Code> code;
    std::string name;
};

namespace catena_emulator {

// Returns the kernel of a module's host function or of a cudaKernel_t; an empty one if there is none.
CUkern_st find_kernel(const void* kernel);
// Adds and removes a cudaKernel_t.
void add_kernel(cudaKernel_t kernel);
void remove_kernel(cudaKernel_t kernel);

}  // namespace catena_emulator
