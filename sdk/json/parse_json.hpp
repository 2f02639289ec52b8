// parse_json: JSON text from anywhere, as a tree of bounded depth.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace catena {

constexpr int max_json_depth = 64;

// Whether arrays and objects nest at most max_json_depth deep.
inline bool is_shallow_json(std::string_view text) {
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') ++i;
            else if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            if (++depth > max_json_depth) return false;
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return true;
}

// The value of a text; is_discarded() if the text is no JSON or nests too deep. The depth is checked
// first: the library copies and prints a tree by recursion, and a deep one would exhaust the stack.
inline nlohmann::json parse_json(std::string_view text) {
    if (!is_shallow_json(text)) return nlohmann::json::value_t::discarded;
    return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace catena
