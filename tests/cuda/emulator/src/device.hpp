// Devices and their memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/types.hpp"

namespace catena_emulator {

struct Stream;

// Everything that calls of the runtime change is guarded by this; no call waits while it holds it.
std::mutex& api();

struct Block {
    std::size_t bytes;
    int device;
    bool imported;  // of another process
};

// Memory of one device: a file in memory, so that processes can share it, mapped where no other memory
// is. Between blocks there are gaps that nobody may touch.
class Heap {
public:
    void* allocate(std::size_t bytes);  // nullptr: there is not so much left
    // data: the start of a block. Returns "", or the error if the gap behind it was written.
    std::string release(void* data);

    bool holds(std::uintptr_t address) const;
    // The block in which address lies, or that ends there; nullptr if it is nobody's.
    const std::pair<const std::uintptr_t, std::size_t>* find(std::uintptr_t address) const;
    std::size_t used() const { return used_; }
    int file() const { return file_; }
    std::size_t offset(std::uintptr_t address) const { return address - base_; }
    void protect(bool closed) const;

private:
    void map();

    int file_ = -1;
    std::uintptr_t base_ = 0;
    std::size_t size_ = 0;
    std::size_t used_ = 0;
    std::uintptr_t next_ = 0;
    std::map<std::uintptr_t, std::size_t> blocks_;
};

struct Device {
    int ordinal = 0;
    Heap heap;
    cudaError_t fault = cudaSuccess;  // by atomics: sticky
    std::set<int> peers;              // that it may access
    std::shared_ptr<Stream> legacy;   // the stream 0
    std::set<std::shared_ptr<Stream>> streams;
};

std::vector<std::unique_ptr<Device>>& devices();
Device& current_device();
int& current_ordinal();
// There is a context on the device from now on.
void use_context(int device);

// What an address is to the emulator. Of device memory the whole range must lie in one block.
struct Place {
    enum class Kind { pageable, pinned, device, invalid } kind;
    int device;
};
Place place_of(const void* data, std::size_t bytes);

// Why a kernel on device may not be given this word, if it is an address; else empty.
std::string wrong_address(std::uint64_t word, const Device& device);

// Memory of devices is readable and writable while one of these lives: the emulator's own work.
class Access {
public:
    Access();
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
};

void* pinned_allocate(std::size_t bytes);
bool pinned_release(void* data);
// Memory of other processes, by address here.
std::map<std::uintptr_t, Block>& imported();

// Errors. enter() fails if nothing can be done on the current device, or if a test wants it; note()
// keeps the thread's error. enter_to_free() is for calls that give something back.
cudaError_t enter();
cudaError_t enter_to_free();
cudaError_t note(cudaError_t error);
void fault(Device& device, cudaError_t error, const std::string& why);

}  // namespace catena_emulator
