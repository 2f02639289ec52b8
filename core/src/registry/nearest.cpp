// What was meant by the name of a function that is not there.
#include "device/plugin.hpp"
#include "registry/registry.hpp"

#include <catena/core/plugin_function.hpp>
#include <catena/core/tables.hpp>

#include <algorithm>
#include <numeric>
#include <set>
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

}  // namespace

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

std::string Registry::nearest(std::string_view name, bool internal) {
    const std::lock_guard lock(mutex_);
    const std::string wanted = folded(name);
    const bool bare = wanted.find('.') == wanted.npos;  // whose it is was left out
    std::size_t nearest = last_word(wanted).size() / 3 + 1;
    std::string guess;
    for (const auto& [candidate, entry] : functions_) {
        if (!internal && (entry->descriptor.flags & CATENA_FUNCTION_INTERNAL)) continue;
        const std::string known = folded(candidate);
        std::size_t d = edit_distance(wanted, known);
        if (bare) d = std::min(d, edit_distance(wanted, last_word(known)));
        if (d < nearest) guess = candidate;
        nearest = std::min(nearest, d);
    }
    return guess;
}

std::vector<KernelsWithoutFunction> Registry::kernels_without_function() {
    const std::lock_guard lock(mutex_);
    std::vector<KernelsWithoutFunction> list;
    for (const auto& plugin : plugins_) {
        std::set<std::string_view> seen;
        for (std::uint32_t i = 0; i < plugin->table->n_kernels; ++i) {
            const std::string_view name = plugin->table->kernels[i]->function;
            if (functions_.contains(name) || !seen.insert(name).second) continue;
            list.push_back({plugin->id, std::string(name), nearest(name, true)});
        }
    }
    return list;
}

std::string nearest_function(std::string_view name) {
    load_plugins_once();
    return Registry::get().nearest(name, false);
}

}  // namespace catena
