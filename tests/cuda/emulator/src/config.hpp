// What the machine that is emulated looks like: read from the environment once.
#pragma once

#include <cstddef>

namespace catena_emulator {

struct Config {
    int devices;         // CATENA_EMULATOR_DEVICES, 2 if unset
    std::size_t memory;  // CATENA_EMULATOR_MEMORY: bytes of each device, 1 GiB if unset
    int capability;      // CATENA_EMULATOR_CAPABILITY: 90 if unset
    int threads;         // CATENA_EMULATOR_THREADS: OS threads that run the blocks of a grid, 1
    bool reversed;       // CATENA_EMULATOR_REVERSED: blocks and threads begin with the last
    int delay_us;        // CATENA_EMULATOR_DELAY: work of streams begins up to so many µs late
    bool staging;      // CATENA_EMULATOR_STAGING: copies from pageable memory wait for their stream
    bool pageable;     // CATENA_EMULATOR_PAGEABLE: devices read the host's memory by themselves
    bool peers;        // CATENA_EMULATOR_PEERS: devices reach each other's memory, 1
    bool shares;       // CATENA_EMULATOR_SHARES: memory and events go to other processes, 1
    bool guarded;      // CATENA_EMULATOR_GUARD: the host cannot touch memory of idle devices, 1
    int driver_error;  // CATENA_EMULATOR_ERROR: what every call returns, as without a driver
};

const Config& config();

}  // namespace catena_emulator
