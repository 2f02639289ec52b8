// Failures of calls into plugins, and the log.
#include "device/device_state.hpp"

#include <cstdio>
#include <cstdlib>

namespace catena {

void tell(std::int32_t level, std::string_view text) {
    static const char* const names[] = {"debug", "info", "warning", "error"};
    static const int least = [] {
        const char* wish = std::getenv("CATENA_LOG");
        const auto found = std::ranges::find(names, std::string_view(wish ? wish : "warning"));
        return found == std::end(names) ? CATENA_LOG_WARNING : static_cast<int>(found - names);
    }();
    if (level < least) return;
    std::fprintf(stderr, "catena %s: %.*s\n", names[std::min(std::max(level, 0), 3)],
                 static_cast<int>(text.size()), text.data());
}

catena_status fail(catena_ctx* ctx, catena_status status, const char* text) noexcept {
    if (status == CATENA_OK) status = CATENA_E_INTERNAL;
    if (ctx && ctx->status == CATENA_OK) {
        ctx->status = status;
        try {
            ctx->error = text ? text : "";
        } catch (const std::bad_alloc&) {
            ctx->error = "out of memory";  // short enough for the string's own buffer
        }
    }
    return status;
}

void throw_failure(const catena_ctx& ctx, catena_status status, const std::string& where,
                   const std::string& hint) {
    std::string text = ctx.error.empty() ? fmt::format("failed with status {}", status) : ctx.error;
    if (text.empty() || text.front() != '[') text = fmt::format("[{}] {}", where, text);
    if (ctx.exception) {
        try {
            std::rethrow_exception(ctx.exception);
        } catch (const PluginError&) {  // it does not name the caller
            throw PluginError(text);
        }
    }
    if (!hint.empty()) text += fmt::format(" ({})", hint);
    if (status == CATENA_E_DEVICE && ctx.device)  // an earlier call may have caused it
        text += diagnostics().last_launches(Device(ctx.device));
    throw_status(status, text);
}

}  // namespace catena
