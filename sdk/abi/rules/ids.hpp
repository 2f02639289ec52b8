// The names of plugins and of functions: one rule, for the core and the tools. sdk/doc/plugin-guide.md
// says it to authors.
#pragma once

#include <string_view>

namespace catena {

inline constexpr std::string_view id_rule =
    "two or more words with dots between them, each a lower-case letter and then lower-case "
    "letters, digits, _ and -, as in org.example.thing";

constexpr bool is_id(std::string_view text) {
    std::size_t words = 1;
    bool first = true;
    for (const char c : text) {
        const bool letter = c >= 'a' && c <= 'z';
        const bool later = (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
        if (!letter && (first || !later)) return false;
        first = c == '.';
        words += first;
    }
    return words >= 2 && !first;
}

}  // namespace catena
