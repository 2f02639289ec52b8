// parse_json: JSON text from anywhere, as a tree of bounded depth.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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
// The library keeps the last value of a key that an object has twice. With repeated, that is set to
// the last such key, if there is one.
inline nlohmann::json parse_json(std::string_view text,
                                 std::optional<std::string>* repeated = nullptr) {
    if (!is_shallow_json(text)) return nlohmann::json::value_t::discarded;
    if (!repeated) return nlohmann::json::parse(text, nullptr, false);
    using JsonEvent = nlohmann::json::parse_event_t;
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    const auto look = [&](int /*depth*/, JsonEvent event, nlohmann::json& value) {
        if (event == JsonEvent::object_start) keys.emplace_back();
        if (event == JsonEvent::object_end) keys.pop_back();
        if (event == JsonEvent::key && !keys.back().insert(value.get<std::string>()).second)
            *repeated = value.get<std::string>();
        return true;
    };
    return nlohmann::json::parse(text, look, false);
}

}  // namespace catena
