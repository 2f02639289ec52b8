// The order of work, by which the machine finds accesses of the same memory that nothing orders. Each
// stream numbers its work. A clock says, for each stream, up to which number all its work is over.
// Streams get such knowledge from events that they wait for, and from the host, which waits for streams.
// All threads of the host count as one, because their own order is not known here.
#pragma once

#include <cstdint>
#include <vector>

#include "../../machine/machine.hpp"

namespace catena_emulator {

struct Device;
struct Stream;

using Clock = std::vector<std::uint32_t>;
void merge(Clock& into, const Clock& from);

struct Operation {
    std::uint32_t number = 0;  // among all
    std::size_t stream = 0;
    std::uint32_t in_stream = 0;
    Clock before;  // what is over when it begins
};

// The caller of these holds api().
Operation next_operation(Stream& stream);
Clock& host_clock();
// The host waited for all of a clock. Locks api().
void host_waited(const Clock& clock);

// The operation that this thread executes for a stream. A graph's nodes are operations, one by one.
Operation& running();
void next_node();

// What the machine hands to the functions of a launch, on whatever thread.
struct InOrder {
    const Operation* now;
    const Device* device = nullptr;
};
// Sets what the machine has to know of the running operation. kernel: nullptr for a copy or fill. The
// context must exist during the launch.
void set_order(catena_machine::Launch& launch, const InOrder& context,
               const catena_machine::Kernel* kernel);
// Notes the accesses of the running operation. Returns why one is a race, else "".
std::string touch(const void* data, std::size_t bytes, bool write);
// Names the instruction and thread that wrote an element last.
std::string writer_of(const void* data);

}  // namespace catena_emulator
