// The names of plugins, functions and extensions: one rule, for the core and the tools.
// sdk/doc/plugin-guide.md explains it to authors.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

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

// Levenshtein's distance, where a swap of two adjacent characters counts as one edit.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1), last, next(row.size());
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        next[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            next[j + 1] = std::min({row[j] + (a[i] != b[j]), row[j + 1] + 1, next[j] + 1});
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
                next[j + 1] = std::min(next[j + 1], last[j - 1] + 1);
        }
        last = row;
        row = next;
    }
    return row.back();
}
// The known name that is nearest, if the distance is below `least`; else "".
template <class Names>
std::string nearest_name(std::string_view name, const Names& known, std::size_t least) {
    std::string nearest;
    for (const std::string& candidate : known) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < least) nearest = candidate;
        least = std::min(least, distance);
    }
    return nearest;
}

}  // namespace catena
