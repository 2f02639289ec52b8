// The process's and the thread's configuration.
#include <catena/core/config.hpp>

namespace catena {

Config& global_config() noexcept {
    static Config instance;
    return instance;
}

Config& config() noexcept {
    static thread_local Config instance = global_config();
    return instance;
}

}  // namespace catena
