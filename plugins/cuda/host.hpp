// The host's table as this plugin keeps it, and errors with formatted text.
#pragma once

#include <exception>
#include <new>

#include "catena/abi.h"

namespace catena_cuda {

// Set by the entry, before any other call; stays valid.
extern const catena_host* host;

// [any] Formats the reason, hands it to the host and returns status.
[[gnu::format(printf, 3, 4)]] catena_status fail(catena_ctx* ctx, catena_status status,
                                                 const char* format, ...);

// Every callback that uses containers, locks or statics of its own does so in here: no exception leaves
// the C ABI. function: as in texts.
template <class Body>
catena_status guarded(catena_ctx* ctx, const char* function, const Body& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return fail(ctx, CATENA_E_NOMEM, "[cuda %s] out of memory", function);
    } catch (const std::exception& e) {
        return fail(ctx, CATENA_E_INTERNAL, "[cuda %s] %s", function, e.what());
    }
}

}  // namespace catena_cuda
