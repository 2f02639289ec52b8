// A host under control: the services of catena::testing, watched, and made to fail on request.
#pragma once

#include <testing/engine.hpp>

#include <functional>
#include <mutex>
#include <optional>

#include "allocations.hpp"

namespace catena::check {

// How parallel_for() runs its pieces.
enum class Pieces {
    whole,      // one piece
    ascending,  // a piece for each grain
    descending,
    shuffled,  // each on a slot of its own choice
    threads,   // many at a time
    nested,    // as within another parallel_for(): one piece, on the last slot
};

// What the host does, and what it saw of the plugin since forget(). One for the process.
struct Control : testing::detail::Watch {
    void begin(bool last) override;
    void end(testing::detail::Reply& reply) override;

    std::function<void()> arm;  // before the callback that is asked for
    long failing_call = 0;      // the n-th call of a service that may fail does; 0: none
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

private:
    std::optional<Inside> inside_;
};
extern Control control;

// What is wrong with a reply, whatever was asked; empty: nothing.
std::string judge(const testing::detail::Reply& reply, const catena_function& f);

inline constexpr const char* injected = "[catena-check] the host: expected this text to be kept";

// The table; its entries forward to testing::World::host().
const catena_host& controlled_host();

}  // namespace catena::check
