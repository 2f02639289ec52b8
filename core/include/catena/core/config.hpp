// The thread's configuration, and scopes that change it for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace catena {

struct Config {
    bool train = true;            // dropout and the like behave as in training
    bool enable_backprop = true;  // calls record the graph
    bool deterministic = false;   // the same bits for any number of threads
    // NaN in a result or a gradient is a ValueError that names the function, the port, and the place
    // of the call. Slow: every array is read. On from the start if CATENA_DEBUG=1 is set.
    bool debug = false;
    // Settings that plugins define and read by name in each call, such as "use_cudnn", with
    // catena_host.config. A gradient uses the settings of its call; without any, those of the
    // thread that computes it. Where a setting is missing, the plugin decides.
    std::map<std::string, std::int64_t, std::less<>> named;
};

// What new threads start with. Set it before they start: reading is not synchronised.
Config& global_config() noexcept;
// This thread's; starts as a copy of global_config(). A thread's first call allocates: throws std::bad_alloc.
Config& config();

// Sets a field of this thread's configuration until the end of the scope:
//     using_config scope(&Config::train, false);
class [[nodiscard]] using_config {
public:
    using_config(bool Config::*field, bool value) : field_(field), before_(config().*field) {
        config().*field = value;
    }
    using_config(const using_config&) = delete;
    using_config& operator=(const using_config&) = delete;
    ~using_config() { config().*field_ = before_; }

private:
    bool Config::*field_;
    bool before_;
};

// The same for a setting that plugins read by name:
//     using_named_config scope("use_cudnn", false);
class [[nodiscard]] using_named_config {
public:
    using_named_config(std::string_view name, std::int64_t value) : name_(name) {
        auto& named = config().named;
        if (const auto found = named.find(name_); found != named.end()) before_ = found->second;
        named[name_] = value;
    }
    using_named_config(const using_named_config&) = delete;
    using_named_config& operator=(const using_named_config&) = delete;
    ~using_named_config() {
        auto& named = config().named;
        const auto found = named.find(name_);
        if (found == named.end()) return;  // somebody else took it away
        if (before_) found->second = *before_;
        else named.erase(found);
    }

private:
    std::string name_;
    std::optional<std::int64_t> before_;
};

// Calls in the scope record no graph.
class [[nodiscard]] no_backprop_mode : using_config {
public:
    no_backprop_mode() : using_config(&Config::enable_backprop, false) {}
};
class [[nodiscard]] force_backprop_mode : using_config {
public:
    force_backprop_mode() : using_config(&Config::enable_backprop, true) {}
};

}  // namespace catena
