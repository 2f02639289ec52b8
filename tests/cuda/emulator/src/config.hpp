// The emulated machine, as the environment describes it. A number at the end is the default.
#pragma once

#include <cstddef>

namespace catena_emulator {

struct Config {
    int devices;         // CATENA_EMULATOR_DEVICES, 2 if unset
    std::size_t memory;  // CATENA_EMULATOR_MEMORY: bytes of each device, 1 GiB if unset
    int capability;      // CATENA_EMULATOR_CAPABILITY: 90 if unset
    int threads;         // CATENA_EMULATOR_THREADS: OS threads that run the blocks of a grid, 1
    bool reversed;       // CATENA_EMULATOR_REVERSED: the last blocks and threads run first
    int delay_us;        // CATENA_EMULATOR_DELAY: longest random delay of a stream's work, in µs
    bool staging;      // CATENA_EMULATOR_STAGING: copies from pageable memory wait for their stream
    bool pageable;     // CATENA_EMULATOR_PAGEABLE: devices access the host's memory directly
    bool peers;        // CATENA_EMULATOR_PEERS: devices can access each other's memory, 1
    bool shares;       // CATENA_EMULATOR_SHARES: processes can share memory and events, 1
    bool guarded;      // CATENA_EMULATOR_GUARD: the host cannot access memory of idle devices, 1
    bool races;        // CATENA_EMULATOR_RACES: accesses that nothing orders are faults, 1
    int driver_error;  // CATENA_EMULATOR_ERROR: returned by every call, as without a driver
};

const Config& config();

}  // namespace catena_emulator
