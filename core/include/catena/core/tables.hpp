// What the loaded plugins brought, in their own words, and names that were meant: for tools.
#pragma once

#include <catena/abi/plugin.h>
#include <catena/core/plugins.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace catena {

struct PluginTable {
    std::string id;              // of its manifest
    const catena_plugin* table;  // valid for ever
};
// In the order of loading; searches the usual places first, as every search does.
std::vector<PluginTable> plugin_tables();

// The function that was probably meant: "org.me.swish" for "swish", "Swish" or "org.me.swihs". "" if
// none is near.
std::string nearest_function(std::string_view name);

// The refused files alone, a line each; "" if there is none. Of more than `most` the first ones and
// how many there are beside them.
std::string refusals(const PluginReport& report, std::size_t most = std::size_t(-1));
// Why nothing is loaded, from the word in CATENA_PLUGINS.
std::string switched_off_text(std::string_view word);
// With '?' for control characters: a file may have any name, and it must not look like two lines.
std::string one_line(std::string text);
// For messages that quote a text of any length: at most its first 200 bytes, cut between characters of
// UTF-8, with "..." where something is left out.
std::string beginning(std::string_view text);

}  // namespace catena
