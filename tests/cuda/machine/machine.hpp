// A GPU on the CPU: parses PTX, the code that nvcc and NVRTC generate, and executes it instruction by
// instruction. It knows nothing of the CUDA runtime: tests/cuda/emulator gives it kernels, memory and
// arguments. It follows "Parallel Thread Execution ISA", the manual of PTX 9.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace catena_machine {

// A parameter of a kernel: its place among the bytes of the arguments.
struct Parameter {
    std::size_t offset, bytes, alignment;
};

struct Code;  // the instructions of a kernel

class Kernel {
public:
    const std::string& name() const;  // as in PTX, mangled
    const std::vector<Parameter>& parameters() const;
    std::size_t argument_bytes() const;
    std::size_t shared_bytes() const;  // declared with a size; dynamic shared memory follows them
    std::size_t maximum_threads() const;  // of a block, by .maxntid; 1024 if it is absent

    std::shared_ptr<Code> code;
};

class Module {
public:
    // Throws std::runtime_error with the line if the text is not PTX that the machine knows.
    explicit Module(std::string ptx);
    // Kernels are translated when they are first asked for. Returns nullptr if there is none.
    const Kernel* find(std::string_view name) const;
    std::vector<std::string> names() const;
    const std::string& text() const;

    struct Parsed;

private:
    std::shared_ptr<Parsed> parsed_;
};

// The states of a byte of memory, one after the other in the life of an allocation.
enum class Byte : unsigned char { free = 0, unwritten = 1, written = 2 };

struct Touched;                            // who accessed a word of memory last; zeros: nobody
constexpr std::size_t touched_bytes = 32;  // of one

// Addresses that a kernel may access.
struct Region {
    std::uintptr_t begin, end;
    Byte* states = nullptr;      // of each byte; nullptr: all are written
    Touched* touched = nullptr;  // of each 4 bytes; nullptr: races are not looked for
};

// What the launches of a kernel did, for a prediction of its speed.
struct Profile {
    struct Count {
        std::uint64_t warps = 0, lanes = 0;  // that executed an instruction
    };
    std::vector<Count> instructions;
    std::uint64_t accesses = 0;   // of global memory, by warps
    std::uint64_t coalesced = 0;  // those that move at most one sector more than their bytes fill
    std::uint64_t sectors = 0;    // of 32 bytes; once for each block, whose cache keeps them
    std::unordered_set<std::uint64_t> touched;  // different sectors, for all blocks together
    std::uint64_t read = 0, written = 0;        // different bytes
    std::uint64_t conflicts = 0;  // further passes over shared memory, as lanes need the same bank
    std::uint64_t barriers = 0;   // of blocks
    // Counts by name, such as "fma.rn.f32".
    std::vector<std::pair<std::string, Count>> by_name(const Kernel& kernel) const;
};

struct Extent {
    unsigned x = 1, y = 1, z = 1;
};

struct Launch {
    const Kernel* kernel;
    Extent grid, block;
    std::size_t dynamic_shared_bytes = 0;
    const std::byte* arguments = nullptr;  // argument_bytes() of them
    std::vector<Region> regions;           // the first one is searched first
    int threads = 1;                       // OS threads that run blocks
    bool reversed = false;                 // the last blocks and warps run first
    std::uint32_t number = 1;  // of this launch among all; the accesses are noted under it
    std::uint32_t over = 0;    // all that was noted under a number up to this one has ended
    // Whether all that was noted under a number has ended before this launch begins. nullptr: always.
    bool (*after)(const void* user, std::uint32_t number) = nullptr;
    const void* user = nullptr;
    // Returns the kernel that was launched under a number; nullptr: it was a copy or fill.
    const Kernel* (*kernel_of)(const void* user, std::uint32_t number) = nullptr;
    Profile* profile = nullptr;  // filled if not nullptr; needs threads == 1
    // Returns what is at an address that was refused, for the text of the fault; may be empty.
    std::string (*describe)(const void* user, std::uintptr_t address) = nullptr;
};

// Why a kernel was aborted: a cudaError_t, and a text that names the kernel, the instruction, its source
// line and the thread. error == 0: it was not.
struct Fault {
    int error = 0;
    std::string text;
};

// Executes a kernel. May be called by several threads at the same time.
Fault run(const Launch& launch);

// Notes that a copy or fill accesses memory, under the number of `by`, whose kernel is not used. Returns
// why that is a race with another stream, else "".
std::string touch(const Region& region, std::uintptr_t begin, std::size_t bytes, bool write,
                  const Launch& by);

// Names the instruction and the thread that wrote a word last.
std::string last_writer(const Region& region, std::uintptr_t address, const Launch& by);

}  // namespace catena_machine
