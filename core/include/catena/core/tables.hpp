// The tables of the loaded plugins, and suggestions for misspelled names: for tools.
#pragma once

#include <catena/abi/plugin.h>
#include <catena/core/plugins.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace catena {

struct PluginTable {
    std::string id;              // from its manifest
    const catena_plugin* table;  // stays valid
};
// In loading order. Searches the usual folders first.
std::vector<PluginTable> plugin_tables();

// A suggestion for a function name: "org.me.swish" for "swish", "Swish" or "org.me.swihs". "" if no
// name is similar.
std::string nearest_function(std::string_view name);

// The refused files, one line each; "" if there are none. With more than `most`, the first ones and
// the number of the others.
std::string refusals(const PluginReport& report, std::size_t most = std::size_t(-1));
// The message that nothing is loaded, with the value of CATENA_PLUGINS.
std::string switched_off_text(std::string_view word);
// Replaces control characters by '?', because a file name must not look like two lines.
std::string one_line(std::string text);
// For messages that quote a long text: at most its first 200 bytes, cut between UTF-8 characters,
// with "..." if it is cut.
std::string beginning(std::string_view text);

}  // namespace catena
