// Hooks for catena::loader and catena::diagnostics, and the entries of registered plugins.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>

#include <catena/abi/kernel.h>
#include <catena/abi/plugin.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

template <>
struct fmt::formatter<catena::Shape> : formatter<std::string> {
    auto format(const catena::Shape& shape, format_context& ctx) const {
        return formatter<std::string>::format(to_string(shape), ctx);
    }
};
template <>
struct fmt::formatter<catena::Dtype> : formatter<std::string_view> {
    auto format(catena::Dtype dtype, format_context& ctx) const {
        return formatter<std::string_view>::format(name(dtype), ctx);
    }
};

namespace catena {

template <class E, class... Args>
[[noreturn, gnu::cold]] void raise(fmt::format_string<Args...> text, Args&&... args) {
    throw E(fmt::format(text, std::forward<Args>(args)...));
}

// The interface of a loader, which registers itself; the core does not access files.
class PluginSource {
public:
    virtual void load() = 0;             // called before each search; loads the first time
    virtual std::string report() = 0;    // text on what was searched, loaded and refused
    virtual std::string refusals() = 0;  // only the refused files; "" if there are none

protected:
    ~PluginSource() = default;
};

// The source must live until the process ends.
void set_plugin_source(PluginSource* source) noexcept;
void load_plugins_once();
// Returns `what`, followed by the loader's report on lines of its own.
std::string with_plugin_report(std::string what);
// Returns the refused files, one per line, after a line break; "" if there are none.
std::string plugin_refusals();

// A registered plugin.
struct PluginEntry {
    std::string id;  // from its manifest
    std::filesystem::path file;
    const catena_plugin* table = nullptr;
    int order = 0;  // position in loading order
};

// Marks code of a plugin: while an object exists, exit() on this thread counts as called by the plugin. The
// process then ends with exit code 1 and a message that names the plugin's file. Handlers that were
// registered with atexit() before the first plugin was loaded do not run.
class PluginStep {
public:
    using Tell = std::function<void(const std::string& reason)>;
    // step: the code that runs, such as "count()". tell: called after the message.
    PluginStep(const std::filesystem::path& file, const char* step, Tell tell = {});
    PluginStep(PluginStep&&) = delete;
    ~PluginStep();
    void enters(const char* step) { step_ = step; }

private:
    static void process_ends();

    const std::filesystem::path& file_;
    const char* step_;
    Tell tell_;
    PluginStep* before_;
};

class FunctionEntry;
class GraphNode;

// What catena::diagnostics adds: debug mode, observers, better messages. Without it, nothing happens.
class Diagnostics {
public:
    // ---- debug mode
    virtual std::vector<void*> stack() { return {}; }  // the addresses of the callers
    virtual std::string to_string(std::span<void* const>) { return {}; }
    // Throws NanError if the array has a NaN. trace: where the call was made.
    virtual void check(const Array&, std::string_view /*function*/, std::string_view /*what*/,
                       std::span<void* const> /*trace*/) {}
    // Checks the results that callers see, and the inputs that the call wrote.
    virtual void check_forward(const FunctionEntry&, std::span<ArrayBody* const> /*x*/,
                               std::span<const Array> /*y*/) {}
    // Runs a step of a backward pass. gradient(i): the sum for input i so far, or an empty array.
    virtual void backward(const GraphNode&, std::span<void* const> /*trace*/,
                          const std::function<Array(std::size_t)>& /*gradient*/,
                          const std::function<void()>& step) {
        step();
    }

    // ---- messages
    // Returns which function was probably meant: "did you mean catena.relu?"; "" if that is unknown.
    virtual std::string suggestion(std::string_view /*function*/) { return {}; }
    // Returns the kernels of loaded plugins whose function does not exist.
    virtual std::vector<KernelsWithoutFunction> kernels_without_function() { return {}; }
    // Warns once about pins in the environment that match nothing.
    virtual void report_pins() {}
    // Throws an error that lists the devices, for a device whose backend no plugin has.
    virtual void no_device(std::string_view /*name*/, std::string_view /*backend*/) {}
    // Throws an error that lists the kernels of the function. key: 4 bits of Dtype for each type_var;
    // declined: kernels for it exist, but their supports() returned false.
    virtual void no_kernel(const FunctionEntry&, std::span<ArrayBody* const> /*x*/,
                           const DeviceState&, std::uint64_t /*key*/, bool /*declined*/) {}
    // Called before a launch that may fail after its call has returned.
    virtual void launches(DeviceState&, const catena_function&, std::int32_t /*phase*/) noexcept {}
    // Returns "\nthe last calls on ...", or "".
    virtual std::string last_launches(const DeviceState&) { return {}; }
};

// Not inline: libraries may be built with hidden symbols.
extern std::atomic<Diagnostics*> registered_diagnostics;
inline Diagnostics& diagnostics() noexcept {
    return *registered_diagnostics.load(std::memory_order_acquire);
}

// Functions that are called around each run of a kernel. run_hook is null unless an observer is set.
struct RunHook {
    std::int64_t (*begin)(Queue& queue) noexcept;
    // began: the result of begin(). calls: the calls that the run processed.
    void (*end)(Queue& queue, std::int64_t began, const catena_kernel& kernel,
                std::span<const catena_call* const> calls) noexcept;
};
extern std::atomic<const RunHook*> run_hook;

}  // namespace catena
