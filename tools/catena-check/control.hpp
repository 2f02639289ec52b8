// A host under control: the services of catena::testing, watched, and made to fail on request.
#pragma once

#include <catena/testing.hpp>

#include <atomic>
#include <mutex>

#include "allocations.hpp"

namespace catena::check {

// How parallel_for() goes about its pieces.
enum class Pieces {
    whole,      // one piece
    ascending,  // a piece for each grain
    descending,
    shuffled,  // each on a slot of its own choice
    threads,   // many at a time
    nested,    // as within another parallel_for(): one piece, on the last slot
};

// What the host does, and what it saw of the plugin since forget(). One for the process.
struct Control {
    long failing_call = 0;  // the n-th call of a service that may fail does; 0: none
    long calls = 0;
    long entered = 0;  // callbacks of the plugin that were called, ever
    bool fired = false;
    bool empty_handed = false;  // no extension is there
    Pieces pieces = Pieces::whole;
    std::int32_t slots = 1;

    int failures = 0;  // calls of fail()
    catena_status status = CATENA_OK;
    std::string text;    // that the host keeps: the first
    std::string misuse;  // what no plugin may ask of a host

    void forget();
    // Whether this call of a service is the one that fails.
    bool fails();
    void blame(const std::string& what);

    std::mutex mutex;
};
extern Control control;

inline constexpr const char* injected = "[catena-check] the host: expected this text to be kept";

// The table; every entry goes on to testing::World::host().
const catena_host& controlled_host();

}  // namespace catena::check
