// The hooks of the loader and of catena::diagnostics, and the plugin that ends the process.
#include "device/hooks.hpp"

#include "device/device_state.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace catena {
namespace {

constinit std::atomic<PluginSource*> source{nullptr};
constinit Diagnostics no_diagnostics;
thread_local PluginStep* current_step = nullptr;

}  // namespace

constinit std::atomic<Diagnostics*> registered_diagnostics{&no_diagnostics};
constinit std::atomic<const RunHook*> run_hook{nullptr};

void set_plugin_source(PluginSource* registered) noexcept { source = registered; }

void load_plugins_once() {
    if (PluginSource* const loader = source.load(std::memory_order_acquire)) loader->load();
}

std::string with_plugin_report(std::string what) {
    PluginSource* const loader = source;
    return std::move(what) + '\n' +
           (loader ? loader->report() : "no plugin loader is linked: see catena::loader");
}

std::string plugin_refusals() {
    PluginSource* const loader = source;
    const std::string text = loader ? loader->refusals() : "";
    return text.empty() ? text : '\n' + text;
}

// exit() does not unwind the stack, so the step still exists.
void PluginStep::process_ends() {
    const PluginStep* const step = std::exchange(current_step, nullptr);
    if (!step) return;
    const std::string reason = fmt::format("its {} called exit()", step->step_);
    tell(CATENA_LOG_ERROR, fmt::format("[plugin] {}: {}: the process ends with code {}",
                                       step->file_.string(), reason, EXIT_FAILURE));
    if (step->tell_) step->tell_(reason);
    std::fflush(nullptr);
    _exit(EXIT_FAILURE);
}

PluginStep::PluginStep(const std::filesystem::path& file, const char* step, Tell tell)
    : file_(file), step_(step), tell_(std::move(tell)), before_(std::exchange(current_step, this)) {
    static const bool registered =
        std::atexit(process_ends) + std::at_quick_exit(process_ends) == 0;
    (void)registered;
}
PluginStep::~PluginStep() { current_step = before_; }

}  // namespace catena
