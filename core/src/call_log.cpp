// The last calls as text.
#include "call_log.hpp"

#include <fmt/format.h>

namespace catena {

std::string CallLog::newest_first() const {
    std::string text;
    const std::uint32_t next = next_.load(std::memory_order_relaxed);
    for (std::uint32_t back = 1; back <= depth; ++back) {
        const std::uintptr_t call = calls_[(next - back) % depth].load(std::memory_order_relaxed);
        if (!call) break;
        const auto* function = reinterpret_cast<const catena_function*>(call & ~std::uintptr_t{1});
        text += fmt::format("{}[{} {}]", text.empty() ? "" : ", ", function->name,
                            call & 1 ? "backward" : "forward");
    }
    return text;
}

}  // namespace catena
