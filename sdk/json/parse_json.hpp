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

// The value of a text; is_discarded() if the text is no JSON, or if arrays and objects nest deeper: the
// library copies and prints a tree by recursion, and a deep one would exhaust the stack. The library
// keeps the last value of a key that an object has twice. With repeated, that is set to the last such
// key, if there is one.
inline nlohmann::json parse_json(std::string_view text,
                                 std::optional<std::string>* repeated = nullptr) {
    using Json = nlohmann::json;
    using Event = Json::parse_event_t;
    struct TooDeep {};
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    const auto look = [&](int depth, Event event, Json& value) {
        const bool opens = event == Event::object_start || event == Event::array_start;
        if (opens && depth >= max_json_depth) throw TooDeep();
        if (!repeated) return true;
        if (event == Event::object_start) keys.emplace_back();
        if (event == Event::object_end) keys.pop_back();
        if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
            *repeated = value.get<std::string>();
        return true;
    };
    try {
        return Json::parse(text, look, false);
    } catch (const TooDeep&) {
        return Json::value_t::discarded;
    }
}

}  // namespace catena
