// What a plugin is doing while it is loaded, for the case that it ends the process.
#pragma once

#include "plugin_audit.hpp"

namespace catena {

// While one lives, exit() on this thread is taken for the plugin's: the process then ends with a
// message that names the plugin, a line in the audit and exit code 1, whatever code the plugin gave.
// What was registered with atexit() before the first plugin was loaded does not run.
class LoadStep {
public:
    explicit LoadStep(const Attempt& attempt);
    LoadStep(const LoadStep&) = delete;
    LoadStep& operator=(const LoadStep&) = delete;
    ~LoadStep();
    void enters(const char* step);  // whose code runs now: "init()"

private:
    static void process_ends();

    const Attempt& attempt_;
    const char* step_ = "static constructors";
    LoadStep* before_;
};

}  // namespace catena
