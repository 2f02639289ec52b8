// The controlled host: forwards calls to the services of catena::testing, records misuse and makes
// calls fail on request. Allocations of plugins by malloc() and operator new can fail, too.
#pragma once

#include <testing/engine.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace catena::check {

// Whether this program replaces malloc(): with glibc, without an address or thread sanitizer.
bool allocations_fail();

// Makes the n-th allocation of plugin code fail, and with `lasting` all later ones; 0: none. Counts
// calls from plugins, libstdc++ and libc within Inside(true), but not those from vendor libraries.
void fail_allocation(long n, bool lasting = false);
// Whether an allocation has failed since the last fail_allocation().
bool allocation_failed();

// Returns the bytes allocated by malloc(), including its caches for each thread.
std::int64_t heap_in_use();

// Marks this thread as running plugin code, or host code again, during the lifetime of the object.
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
    ascending,  // pieces of about one grain, in order
    descending,
    shuffled,  // in random order, on random slots
    threads,   // on several threads
    nested,    // one piece on the last slot, as inside another parallel_for()
};

// Settings of the host, and what it recorded since forget(). There is one object per process.
struct Control : testing::detail::Watch {
    void begin(testing::detail::Step step, bool last) override;
    void end(testing::detail::Reply& reply) override;
    catena_ctx* handle(catena_ctx* ctx) override;
    catena_var* handle(catena_var* var) override;
    catena_var* variable(catena_var* handle) override;
    void forget_handles() override;
    // Returns the context of a handle that the plugin passes to a service; null and blames the plugin
    // if it is not that of the running callback.
    catena_ctx* context(catena_ctx* handle, const char* service);
    bool has_variables() const;  // whether the running callback may call functions

    std::function<void()> arm;  // called before the callback under test
    long failing_call = 0;      // the n-th call of a service that can fail does fail; 0: none
    long calls = 0;
    long entered = 0;  // number of plugin callbacks called by this process
    bool fired = false;
    bool empty_handed = false;  // extensions() finds none
    Pieces pieces = Pieces::whole;
    std::int32_t slots = 1;

    int failures = 0;    // calls of fail(), and of call() that fail
    std::string text;    // of the first fail()
    std::string misuse;  // how the plugin misused the host; empty: not at all

    void forget();
    // Counts a call of a service and returns whether it has to fail.
    bool fails();
    void blame(const std::string& what);

    std::mutex mutex;

private:
    void* add_handle(void* object);
    void* object_of(const void* handle);  // null if there is none

    std::optional<Inside> inside_;
    std::optional<testing::detail::Step> step_;  // of the running callback
    std::unordered_map<const void*, void*> handles_;
    std::mutex handles_mutex_;
};
extern Control control;

// Returns what is wrong with the reply of a callback, or an empty text.
std::string judge(const testing::detail::Reply& reply, const catena_function& f);

inline constexpr const char* injected = "[catena-check] the host: expected this text to be kept";

// Returns the host table, whose entries forward to testing::World::host().
const catena_host& controlled_host();

}  // namespace catena::check
