// The host's table, and errors with formatted text.
#pragma once

#include <exception>
#include <new>

#include <catena/plugin/tables.hpp>

namespace catena_cuda {

using catena::plugin::fail;
inline const catena_host* const& host = catena::plugin::the_host;

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
