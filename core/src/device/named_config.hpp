// Settings that plugins ask for by name, as they were when a call was made, for its gradient.
#pragma once

#include <catena/core/config.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace catena {

// The values of config(), for reading. Allocates nothing: a thread without a copy reads global_config().
const Config& read_config() noexcept;

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
        if (named == kept.values) return;
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
