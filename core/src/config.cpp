// The process's and the thread's configuration.
#include "named_config.hpp"

#include <catena/core/config.hpp>

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

Config& config() noexcept {
    static thread_local Config instance = global_config();
    return instance;
}

std::shared_ptr<const NamedConfig> keep_named(const Config& now) {
    static thread_local std::shared_ptr<const NamedConfig> last;
    if (!last || last->values != now.named)
        last = std::make_shared<const NamedConfig>(NamedConfig{now.named});
    return last;
}

}  // namespace catena
