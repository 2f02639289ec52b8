// The host's table as this plugin keeps it, and errors with formatted text.
#pragma once

#include "catena/abi.h"

namespace catena_cpu {

// Set by the entry, before any other call; stays valid.
extern const catena_host* host;

// [any] Formats the reason, hands it to the host and returns status.
[[gnu::format(printf, 3, 4)]] catena_status fail(catena_ctx* ctx, catena_status status,
                                                 const char* format, ...);

}  // namespace catena_cpu
