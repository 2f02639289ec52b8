// What was meant by the name of a function that is not there.
#include "diagnostics.hpp"

#include "device/hooks.hpp"

#include <catena/diagnostics/kernels.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace catena {
namespace {

// "catena.Adam_Update" -> "adamupdate": what people mix up.
std::string folded(std::string_view name) {
    if (name.starts_with("catena.")) name.remove_prefix(7);
    std::string text;
    for (const char c : name) {
        if (c != '_') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return text;
}

std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Levenshtein's distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string CoreDiagnostics::nearest(std::string_view name, bool internal) {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    const std::string wanted = folded(name);
    const bool bare = wanted.find('.') == wanted.npos;  // whose it is was left out
    std::size_t least = last_word(wanted).size() / 3 + 1;
    std::string guess;
    for (const auto& [candidate, entry] : registry.functions()) {
        if (!internal && (entry->descriptor.flags & CATENA_FUNCTION_INTERNAL)) continue;
        const std::string known = folded(candidate);
        std::size_t d = edit_distance(wanted, known);
        if (bare) d = std::min(d, edit_distance(wanted, last_word(known)));
        if (d < least) guess = candidate;
        least = std::min(least, d);
    }
    return guess;
}

std::string CoreDiagnostics::nearest(std::string_view name, std::span<const std::string> known) {
    std::string guess;
    std::size_t least = name.size() / 2 + 1;
    for (const std::string& candidate : known) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < least) guess = candidate;
        least = std::min(least, distance);
    }
    return guess;
}

std::string nearest_function(std::string_view name) {
    load_plugins_once();
    return diagnostics().nearest(name, false);
}

namespace {

// When the library is loaded, the core gets its hooks.
constinit CoreDiagnostics here;
[[maybe_unused]] const bool registered = (registered_diagnostics.store(&here), true);

}  // namespace
}  // namespace catena
