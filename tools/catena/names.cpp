// Names on the command line and in files: found, guessed, refused.
#include "commands.hpp"

#include <catena/core/tables.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace catena::command {

const catena_function& find_function(std::string_view name) {
    const std::string wanted = (name.find('.') == name.npos ? "catena." : "") + std::string(name);
    const auto names = function_names();
    // Without any function the reason is with the plugins, which the core reports.
    if (names.empty() || std::ranges::count(names, wanted) > 0) return function_descriptor(wanted);
    const std::string guess = nearest_function(name);
    const PluginReport report = plugin_report();
    std::string hints = refusals(report, 3);
    if (!hints.empty()) hints += report.refused.size() > 1 ? "\n" : "; ";
    if (report.refused.size() > 1) hints = "\n" + hints;
    for (const KernelsWithoutFunction& k : report.kernels_without_function)
        if (k.function == wanted) hints += fmt::format("{} has kernels for it alone; ", k.plugin);
    throw PluginError(
        fmt::format("no plugin has the function {}; {}{}", wanted, hints,
                    guess.empty() ? "see catena functions" : "did you mean " + guess + "?"));
}

std::int64_t last_number(const Arrays& given, std::string_view prefix) {
    std::int64_t last = -1;
    for (const auto& [name, array] : given) {
        if (!name.starts_with(prefix)) continue;
        std::int64_t number = -1;
        const char* const end = name.data() + name.size();
        const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, number);
        if (error != std::errc() || fmt::format("{}{}", prefix, number) != name) continue;
        last = std::max(last, number);
    }
    return last;
}

const Array& need(const catena_function& f, const Arrays& given, const std::string& name,
                  std::string_view why) {
    const auto found = given.find(name);
    if (found != given.end()) return found->second;
    throw InvalidError(fmt::format("[{}] {}: expected in the file{}{}, got none", f.name, name,
                                   why.empty() ? "" : ", for there is ", why));
}

void refuse_unknown(const catena_function& f, const Arrays& given, std::string_view prefix,
                    const std::vector<std::string>& known) {
    for (const auto& [name, array] : given) {
        if (!name.starts_with(prefix) || std::ranges::count(known, name) > 0) continue;
        throw InvalidError(
            fmt::format("[{}] arrays {}*: expected {}, got {}", f.name, prefix,
                        known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")), name));
    }
}

}  // namespace catena::command
