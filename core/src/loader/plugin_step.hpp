// What a plugin is doing, for the case that it ends the process.
#pragma once

#include "loader/plugin_audit.hpp"

#include <filesystem>

namespace catena {

// While one lives, exit() on this thread is taken for the plugin's: the process then ends with a
// message that names the plugin's file and exit code 1, whatever code the plugin gave. What was
// registered with atexit() before the first plugin was loaded does not run.
class PluginStep {
public:
    // While the plugin is loaded: the audit gets a line, too.
    explicit PluginStep(const Attempt& attempt);
    // Later. step: whose code runs, such as "count()".
    PluginStep(const std::filesystem::path& file, const char* step);
    PluginStep(const PluginStep&) = delete;
    PluginStep& operator=(const PluginStep&) = delete;
    ~PluginStep();
    void enters(const char* step) { step_ = step; }

private:
    PluginStep(const std::filesystem::path& file, const char* step, const Attempt* attempt);
    static void process_ends();

    const std::filesystem::path& file_;
    const char* step_;
    const Attempt* attempt_;
    PluginStep* before_;
};

}  // namespace catena
