// The process's malloc, which can be made to fail while a plugin runs; operator new comes to it,
// too.
#pragma once

#include <cstdint>

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

}  // namespace catena::check
