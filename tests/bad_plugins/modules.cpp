// Modules whose functions throw exceptions, and one that loads.
#include <stdexcept>

#ifndef NAME
#define NAME "test." TEXT(BAD)
#endif
#define DEVICES ""
#define VERSION "1.2"
#include "module.h"

// throws fails: its entry threw an exception: thrown on purpose
ENTRY(throws) { throw std::runtime_error("thrown on purpose"); }

// throws_number fails: its entry threw an exception
ENTRY(throws_number) { throw 42; }

// init_throws fails: its init() threw an exception: at the last moment
SPOIL(init_throws) {
    the_plugin.init = [](const catena_host *, catena_ctx *) -> catena_status {
        throw std::runtime_error("at the last moment");
    };
}

// z_good fails: nothing
// The last by file name, loaded after all refused ones.
// compile: -DID='"org.example.z"' -DNAME='"test.z"'
SPOIL(z_good) {}
