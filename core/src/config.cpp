// The process's and the thread's configuration.
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

}  // namespace catena
