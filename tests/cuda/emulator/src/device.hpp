// Devices and their memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "../../machine/machine.hpp"
#include "api.hpp"

namespace catena_emulator {

struct Stream;

// Guards everything that runtime calls change; no call waits while it holds this.
std::mutex& api();

struct Block {
    std::size_t bytes;
    int device;
    bool imported;  // belongs to another process
};

// The memory of one device: a memfd, so that processes can share it, mapped into an address range
// of its own. Each byte has a state; those between blocks are free.
class Heap {
public:
    void* allocate(std::size_t bytes);  // nullptr: not enough is left
    void release(void* data);           // data: the start of a block

    bool holds(std::uintptr_t address) const;
    // Returns the block that contains address or ends there; nullptr if there is none.
    const std::pair<const std::uintptr_t, std::size_t>* find(std::uintptr_t address) const;
    std::size_t used() const { return used_; }
    int file() const { return file_; }
    std::size_t offset(std::uintptr_t address) const { return address - base_; }
    catena_machine::Byte* states(std::uintptr_t address) const { return states_ + offset(address); }
    catena_machine::Region region() const { return {base_, base_ + size_, states_, touched_}; }
    void protect(bool closed) const;

private:
    void map();

    int file_ = -1;
    std::uintptr_t base_ = 0;
    std::size_t size_ = 0;
    std::size_t used_ = 0;
    std::uintptr_t next_ = 0;
    catena_machine::Byte* states_ = nullptr;
    catena_machine::Touched* touched_ = nullptr;  // who accessed each 4 bytes
    std::map<std::uintptr_t, std::size_t> blocks_;
};

struct Device {
    int ordinal = 0;
    Heap heap;
    cudaError_t fault = cudaSuccess;  // sticky; accessed atomically
    std::mutex running;               // held by the kernel that runs: one after another
    std::set<int> peers;              // devices whose memory this one may access
    std::shared_ptr<Stream> legacy;   // stream 0
    std::set<std::shared_ptr<Stream>> streams;
};

std::vector<std::unique_ptr<Device>>& devices();
Device& current_device();
int& current_ordinal();
// Records that the process has a context on the device.
void use_context(int device);

// The kind of memory at an address. A range of device memory must lie within one block.
struct Place {
    enum class Kind { pageable, pinned, device, invalid } kind;
    int device;
};
Place place_of(const void* data, std::size_t bytes);

// The states of device memory that place_of() found; nullptr if it has none.
catena_machine::Byte* states_of(const void* data);
// The memory that code on the device may access, its own first.
std::vector<catena_machine::Region> regions_of(const Device& device);
// Returns what is at an address that code on the device may not access; empty if it may, or if nothing
// is there.
std::string wrong_address(std::uintptr_t address, const Device& device);

// While an instance exists, the emulator itself can access memory of devices.
class Access {
public:
    Access();
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
};

void* pinned_allocate(std::size_t bytes);
bool pinned_release(void* data);
// Memory imported from other processes, by its address in this one.
std::map<std::uintptr_t, Block>& imported();

// Errors. enter() fails if the current device is unusable or a test requests it; note() stores the
// thread's error. Calls that free something use enter_to_free(), which tests cannot make fail.
cudaError_t enter();
cudaError_t enter_to_free();
cudaError_t note(cudaError_t error);
void fault(Device& device, cudaError_t error, const std::string& why);
cudaError_t fault_of(const Device& device);

}  // namespace catena_emulator
