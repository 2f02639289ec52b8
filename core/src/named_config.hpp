// Settings that plugins ask for by name, as they were when a call was made, for its gradient.
#pragma once

#include <catena/core/config.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace catena {

struct NamedConfig {
    decltype(Config::named) values;
};

// A copy of now.named. Calls of a thread that were made with the same values share it.
std::shared_ptr<const NamedConfig> keep_named(const Config& now);

// Until the end of the scope these come before the thread's own.
class [[nodiscard]] using_kept_named {
public:
    explicit using_kept_named(const NamedConfig& kept) {
        auto& named = config().named;
        const bool same = std::ranges::all_of(kept.values, [&](const auto& item) {
            const auto found = named.find(item.first);
            return found != named.end() && found->second == item.second;
        });
        if (same) return;  // as in most backward passes: there is nothing to copy
        before_ = named;
        for (const auto& [name, value] : kept.values) named.insert_or_assign(name, value);
    }
    using_kept_named(const using_kept_named&) = delete;
    using_kept_named& operator=(const using_kept_named&) = delete;
    ~using_kept_named() {
        if (before_) config().named = std::move(*before_);
    }

private:
    std::optional<decltype(Config::named)> before_;
};

}  // namespace catena
