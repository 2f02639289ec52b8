// Where plugins come from. The core knows no files: a loader registers itself here.
#pragma once

#include <string>
#include <string_view>

namespace catena {

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

}  // namespace catena
