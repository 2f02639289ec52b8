// The process's and the thread's configuration.
#include "device/named_config.hpp"

#include <catena/core/config.hpp>
#include <catena/core/per_thread.hpp>

#include <cstdlib>
#include <string_view>

namespace catena {
namespace {

Config from_environment() noexcept {
    const char* debug = std::getenv("CATENA_DEBUG");
    Config initial;
    initial.debug = debug && *debug && std::string_view(debug) != "0";
    return initial;
}

}  // namespace

Config& global_config() noexcept {
    static Config instance = from_environment();
    return instance;
}

namespace {
thread_local constinit PerThread<Config> mine;
}

Config& config() { return mine.get(global_config()); }

const Config& read_config() noexcept {
    const Config* found = mine.find();
    return found != nullptr ? *found : global_config();
}

std::shared_ptr<const NamedConfig> keep_named(const Config& now) {
    static thread_local constinit PerThread<std::shared_ptr<const NamedConfig>> kept;
    auto& last = kept.get();
    if (!last || last->values != now.named)
        last = std::make_shared<const NamedConfig>(NamedConfig{now.named});
    return last;
}

}  // namespace catena
