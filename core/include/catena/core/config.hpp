// The configuration of the current thread, and scopes that change it.
#pragma once

#include <catena/abi/kernel.h>
#include <catena/core/memory.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace catena {

// The type that products, convolutions and attention of float32 arrays may round their operands to.
// Results and sums stay float32. A device that is not faster with it ignores it.
enum class Products : std::uint32_t {
    float32 = 0,
    bfloat16 = CATENA_CALL_BFLOAT16,
    float16 = CATENA_CALL_FLOAT16,
};

struct Config {
    bool train = true;            // dropout and similar functions run in training mode
    bool enable_backprop = true;  // calls record the graph
    bool deterministic = false;   // bit-identical results for any number of threads
    // Gradients use the value of their forward call.
    Products products = Products::float32;
    // A NaN in a result or a gradient throws a ValueError that names the function, the port, and
    // the location of the call. Slow: every array is read. CATENA_DEBUG=1 turns it on at the start.
    bool debug = false;
    // Functions that are compositions run them although there are kernels.
    bool compositions = false;
    // Settings that plugins define and read by name in each call, such as "use_cudnn", with
    // catena_host.config. A gradient uses the settings of its forward call, or, if that had none,
    // those of the thread that computes the gradient. Without a setting, the plugin decides.
    std::map<std::string, std::int64_t, std::less<>> named;
};

// The initial configuration of new threads. Set it before starting them: reads are unsynchronized.
Config& global_config() noexcept;
// This thread's configuration, initially a copy of global_config(). The first call in a thread
// allocates, and may throw std::bad_alloc.
Config& config();

// Sets a field of this thread's configuration until the end of the scope. A scope needs a name: one
// without a name ends at once, which [[nodiscard]] on its constructor reports.
//     using_config scope(&Config::train, false);
template <class T>
struct [[nodiscard]] using_config : private using_value<T> {
    [[nodiscard]] using_config(T Config::*field, std::type_identity_t<T> value)
        : using_value<T>(config().*field, std::move(value)) {}
};

// The same for a setting that plugins read by name:
//     using_named_config scope("use_cudnn", false);
struct [[nodiscard]] using_named_config : private using_config<decltype(Config::named)> {
    [[nodiscard]] using_named_config(std::string_view name, std::int64_t value)
        : using_config(&Config::named, config().named) {
        config().named.insert_or_assign(std::string(name), value);
    }
};

// Calls in the scope record no graph.
struct [[nodiscard]] no_backprop_mode : private using_config<bool> {
    [[nodiscard]] no_backprop_mode() : using_config(&Config::enable_backprop, false) {}
};
struct [[nodiscard]] force_backprop_mode : private using_config<bool> {
    [[nodiscard]] force_backprop_mode() : using_config(&Config::enable_backprop, true) {}
};

}  // namespace catena
