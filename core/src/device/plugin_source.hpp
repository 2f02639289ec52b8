// PluginSource, a loader's interface; PluginStep, a call into a plugin that may end the process.
#pragma once

#include <catena/abi/plugin.h>
#include <catena/core/memory.hpp>

#include <filesystem>
#include <functional>
#include <string>

namespace catena {

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
    void enters(const char* step) { step_ = step; }

private:
    static void process_ends();

    const std::filesystem::path& file_;
    const char* step_;
    Tell tell_;
    using_value<PluginStep*> scope_;
};

}  // namespace catena
