// Errors of the calls that a composition makes, as errors of the composition: one rule, for the core
// and the tests of plugins.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena {

// Names of the callee's inputs, and of the composition's inputs that were passed there.
using InputNames = std::vector<std::pair<std::string, std::string>>;

inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Replaces the names of the callee's inputs in a message: the first word, and others that follow "as ",
// "of ", "(" or ", ".
inline std::string renamed(std::string_view text, const InputNames& names) {
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && is_word(text[end])) ++end;
        const std::string_view word = text.substr(i, std::max(end, i + 1) - i);
        const std::string_view before = text.substr(0, i);
        const bool is_name = i == 0 || before.ends_with("as ") || before.ends_with("of ") ||
                             before.ends_with("(") || before.ends_with(", ");
        const auto found = std::find_if(names.begin(), names.end(),
                                        [&](const auto& p) { return p.first == word; });
        result += is_name && found != names.end() ? std::string_view(found->second) : word;
        i += word.size();
    }
    return result;
}

// Returns "[outer] ..." for "[callee] ...": with the names of the composition or, if the argument is none
// of its inputs, as "[outer] in callee: ...". Empty if the text is not an error of the callee.
inline std::string within(std::string_view outer, const std::string& callee, std::string_view text,
                          const InputNames& names) {
    const std::string prefix = "[" + callee + "] ";
    if (!text.starts_with(prefix) || text.starts_with(prefix + "compose: ")) return {};
    const std::string_view rest = text.substr(prefix.size());
    const std::string first(rest.begin(), std::find_if_not(rest.begin(), rest.end(), is_word));
    const bool known =
        std::any_of(names.begin(), names.end(), [&](const auto& p) { return p.first == first; });
    const std::string start = "[" + std::string(outer) + "] ";
    if (known) return start + renamed(rest, names);
    return start + (rest.starts_with("in ") ? "" : "in " + callee + ": ") + std::string(rest);
}

}  // namespace catena
