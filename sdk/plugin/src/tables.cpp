// Errors of plugins whose tables are written by hand.
#include "catena/plugin/tables.hpp"

#include <cstdarg>
#include <cstdio>

namespace catena::plugin {

catena_status fail(catena_ctx* ctx, catena_status status, const char* format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return host().fail(ctx, status, text);
}

}  // namespace catena::plugin
