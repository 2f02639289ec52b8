// Plugins as the core knows them: where they come from, what is registered, and whose code runs.
#pragma once

#include <catena/abi/plugin.h>

#include <filesystem>
#include <functional>
#include <string>

namespace catena {

// The core knows no files: a loader registers itself here.
class PluginSource {
public:
    virtual void load() = 0;             // called before each search; loads the first time
    virtual std::string report() = 0;    // what was searched, loaded and refused, for messages
    virtual std::string refusals() = 0;  // the refused files alone; "" if there are none

protected:
    ~PluginSource() = default;
};

// The source must live until the process ends.
void set_plugin_source(PluginSource* source) noexcept;
void load_plugins_once();
// `what`, and on lines of its own where plugins were searched.
std::string with_plugin_report(std::string what);
// The refused files, on lines of their own after a line break; "" if there are none.
std::string plugin_refusals();

// A registered plugin.
struct PluginEntry {
    std::string id;  // of its manifest
    std::filesystem::path file;
    const catena_plugin* table = nullptr;
    int order = 0;  // of loading
};

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
