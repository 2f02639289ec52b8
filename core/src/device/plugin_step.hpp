// Which plugin's code is running, for a message in case it ends the process.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace catena {

// While one exists, a call of exit() on this thread is taken for the plugin's. The process then ends with
// exit code 1 and a message that names the plugin's file. Handlers that were registered with atexit()
// before the first plugin was loaded do not run.
class PluginStep {
public:
    using Tell = std::function<void(const std::string& reason)>;
    // step: the code that runs, such as "count()". tell: called after the message.
    PluginStep(const std::filesystem::path& file, const char* step, Tell tell = {});
    PluginStep(const PluginStep&) = delete;
    PluginStep& operator=(const PluginStep&) = delete;
    ~PluginStep();
    void enters(const char* step) { step_ = step; }

private:
    static void process_ends();

    const std::filesystem::path& file_;
    const char* step_;
    Tell tell_;
    PluginStep* before_;
};

}  // namespace catena
