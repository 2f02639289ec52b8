// The names of plugins, functions and extensions: one rule, for the core and the tools.
// sdk/doc/plugin-guide.md explains it to authors.
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

// The id of an extension, by any of its ids: drafts that 1.1 promoted are offered until 1.2.
constexpr std::string_view stable_id(std::string_view id) {
    constexpr std::string_view promoted[][2] = {
        {"catena.kernels.draft/1", "catena.kernels/1"},
        {"catena.compiled_kernels.draft/1", "catena.compiled_kernels/1"},
        {"catena.compiler.draft/1", "catena.compiler/1"},
        {"catena.targets.draft/1", "catena.targets/1"},
        {"catena.draws.draft/1", "catena.draws/1"}};
    for (const auto& [draft, stable] : promoted)
        if (id == draft) return stable;
    return id;
}

}  // namespace catena
