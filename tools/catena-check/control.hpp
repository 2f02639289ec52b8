// A host under control: the services of catena::testing, watched, and made to fail on request; and the
// process's malloc, which can be made to fail while a plugin runs. operator new comes to it, too.
#pragma once

#include <testing/engine.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace catena::check {

// Whether this program's malloc is its own; a sanitizer brings another.
bool allocations_fail();

// The n-th allocation from now on fails that a plugin's own code makes on this thread, and with
// `lasting` all that follow. 0: none. Those of a vendor's library are not the plugin's to survive.
void fail_allocation(long n, bool lasting = false);
// Whether it came to that.
bool allocation_failed();

// Bytes that this program has from malloc() now, with what its threads keep at hand.
std::int64_t heap_in_use();

// While one lives, this thread runs the plugin's code, or the host's again.
class Inside {
public:
    explicit Inside(bool plugin);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    bool before_;
};

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

    int failures = 0;    // calls of fail()
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
