// Ends the process with a message where a plugin calls exit().
#include "device/plugin_step.hpp"

#include "device/context.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace catena {
namespace {

thread_local PluginStep* current = nullptr;

}  // namespace

// exit() does not unwind the stack, so the step still exists.
void PluginStep::process_ends() {
    const PluginStep* const step = std::exchange(current, nullptr);
    if (!step) return;
    const std::string reason = fmt::format("its {} called exit()", step->step_);
    host_table().log(nullptr, CATENA_LOG_ERROR,
                     fmt::format("[plugin] {}: {}: the process ends with code {}",
                                 step->file_.string(), reason, EXIT_FAILURE)
                         .c_str());
    if (step->tell_) step->tell_(reason);
    std::fflush(nullptr);
    _exit(EXIT_FAILURE);
}

PluginStep::PluginStep(const std::filesystem::path& file, const char* step, Tell tell)
    : file_(file), step_(step), tell_(std::move(tell)), before_(std::exchange(current, this)) {
    static const bool registered =
        std::atexit(process_ends) + std::at_quick_exit(process_ends) == 0;
    (void)registered;
}
PluginStep::~PluginStep() { current = before_; }

}  // namespace catena
