// Names of calls that are kept, and the last calls as text.
#include "device/call_log.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>

namespace catena {

CallName::CallName(std::string_view text) {
    static std::mutex mutex;
    static auto* const all = new std::set<std::string, std::less<>>;
    const std::lock_guard lock(mutex);
    text_ = &*all->emplace(text).first;
}

std::string CallLog::newest_first() const {
    std::string text;
    const std::uint32_t next = next_.load(std::memory_order_relaxed);
    for (std::uint32_t back = 1; back <= depth; ++back) {
        const std::uintptr_t call = calls_[(next - back) % depth].load(std::memory_order_acquire);
        if (!call) break;
        const std::uintptr_t kind = call & mask, called = call & ~std::uintptr_t{mask};
        if (!text.empty()) text += ", ";
        if (kind == named) text += fmt::format("[{}]", *reinterpret_cast<std::string*>(called));
        else
            text += fmt::format("[{} {}]", reinterpret_cast<catena_function*>(called)->name,
                                kind == backward ? "backward" : "forward");
    }
    return text;
}

}  // namespace catena
