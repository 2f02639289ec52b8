// Settings that plugins ask for by name, as they were when a call was made, for its gradient.
#pragma once

#include <catena/core/config.hpp>

#include <memory>
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
    explicit using_kept_named(const NamedConfig& kept) : before_(config().named) {
        for (const auto& [name, value] : kept.values) config().named.insert_or_assign(name, value);
    }
    using_kept_named(const using_kept_named&) = delete;
    using_kept_named& operator=(const using_kept_named&) = delete;
    ~using_kept_named() { config().named = std::move(before_); }

private:
    decltype(Config::named) before_;
};

}  // namespace catena
