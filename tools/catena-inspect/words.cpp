// Converts JSON documents to text.
#include "inspect.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace catena::inspect {
namespace {

using Phrases = std::map<std::string, std::string>;

// Returns the phrases for the flags in json, in the order of the flags.
std::vector<std::string> phrases(const Json& json, const Phrases& known) {
    std::vector<std::string> list;
    for (const auto& flag : json.at("flags"))
        if (const auto found = known.find(flag); found != known.end())
            list.push_back(found->second);
    return list;
}

// Returns "a, b", or `none` if the list is empty.
std::string joined(const Json& list, const char* none = "") {
    if (list.empty()) return none;
    return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), ", "));
}

// Returns the shortest text for a number; "below 1" for the largest double below 1.
std::string value_text(const Json& v) {
    if (v == std::nextafter(1.0, 0.0)) return "below 1";
    return v.is_number_float() ? fmt::format("{}", v.get<double>()) : v.dump();
}

// Returns ", 0 to 1". Bounds beyond +-1e18 mean that there is no bound.
std::string range_text(const Json& range) {
    constexpr double most = 1e18;
    const bool low = range[0].is_number() && range[0].get<double>() > -most;
    const bool high = range[1].is_number() && range[1].get<double>() < most;
    if (low && high) return fmt::format(", {} to {}", value_text(range[0]), value_text(range[1]));
    if (low) return fmt::format(", at least {}", value_text(range[0]));
    return high ? fmt::format(", at most {}", value_text(range[1])) : "";
}

std::string port_words(const Json& port) {
    static const Phrases known{{"optional", "optional"},
                               {"variadic", "one or more"},
                               {"non_differentiable", "no gradient"},
                               {"mutated", "updated in place"},
                               {"hidden", "not returned"}};
    auto list = phrases(port, known);
    list.insert(list.begin(), text(port, "type"));
    return fmt::format("{}", fmt::join(list, ", "));
}

std::string attribute_words(const Json& a) {
    std::string words = text(a, "kind");
    words += a.contains("default") ? ", default " + value_text(a["default"]) : ", required";
    if (a.contains("range")) words += range_text(a["range"]);
    if (a.contains("choices")) words += ", one of " + joined(a["choices"]);
    return words + (is(a, "hint") ? ", affects only speed" : "");
}

std::string size_words(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    const double kib = static_cast<double>(bytes) / 1024;
    return kib < 1024 ? fmt::format("{:.1f} KiB", kib) : fmt::format("{:.1f} MiB", kib / 1024);
}

std::string abi_words(const Json& manifest) {
    const Json& abi = manifest.at("abi");
    const int major = abi["major"].get<int>();
    if (!abi.contains("needed"))
        return fmt::format("{}: unsupported major version, other fields not read", major);
    return fmt::format("needs {0}.{1}, built with {0}.{2}", major, abi["needed"].get<int>(),
                       abi["built"].get<int>());
}

}  // namespace

std::string text(const Json& json, const char* member) {
    return json.at(member).get<std::string>();
}

bool is(const Json& json, const char* flag) {
    return std::ranges::count(json.at("flags"), Json(flag)) > 0;
}

std::string short_name(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::string summary(const Json& function) {
    const std::string doc = text(function, "doc");
    return doc.substr(0, doc.find('\n'));
}

std::string broken(std::string text) {
    constexpr std::size_t most = 88;
    const std::string indent(text.find('(') + 1, ' ');
    std::string lines;
    while (text.size() > most) {
        std::size_t comma = 0;  // position of the last comma outside brackets
        int depth = 0;
        for (std::size_t i = indent.size(); i < most; ++i) {
            if (text[i] == '{' || text[i] == '[') ++depth;
            if (text[i] == '}' || text[i] == ']') --depth;
            if (text[i] == ',' && depth == 0) comma = i;
        }
        if (comma == 0) break;
        lines += text.substr(0, comma + 1) + '\n';
        text = indent + text.substr(text.find_first_not_of(' ', comma + 1));
    }
    return lines + text;
}

std::vector<Row> manifest_rows(const Json& m) {
    std::vector<Row> rows;
    if (m.contains("id"))
        rows = {{"plugin", text(m, "id") + " " + text(m, "version")},
                {"vendor", text(m, "vendor")},
                {"licence", text(m, "license")},
                {"devices", joined(m["devices"], "none")}};
    rows.insert(rows.end(),
                {{"ABI", abi_words(m)},
                 {"loads here", m["refused"].is_null() ? "yes" : "no: " + text(m, "refused")},
                 {"size", size_words(m["size"].get<std::uint64_t>())},
                 {"machine", text(m, "machine")},
                 {"build id", text(m, "build_id")},
                 {"sha256", text(m, "sha256")},
                 {"needs", joined(m["needs"], "no library")},
                 {"exports", joined(m["exports"], "nothing")}});
    std::erase_if(rows, [](const Row& row) { return row[1].empty(); });
    return rows;
}

std::vector<Row> port_rows(const Json& f) {
    std::vector<Row> rows;
    const auto add = [&](const char* list, const char* what, auto words) {
        for (const auto& p : f[list])
            rows.push_back({what, text(p, "name"), words(p), text(p, "doc")});
    };
    add("inputs", "input", port_words);
    add("attributes", "attribute", attribute_words);
    add("outputs", "output", port_words);
    return rows;
}

std::string call(const Json& function) {
    std::vector<std::string> arguments;
    for (const auto& port : function.at("inputs"))
        arguments.push_back(text(port, "name") + (is(port, "optional") ? "?" : "") +
                            (is(port, "variadic") ? "..." : ""));
    for (const auto& a : function.at("attributes"))
        arguments.push_back(text(a, "name") +
                            (a.contains("default") ? "=" + value_text(a["default"]) : ""));
    std::vector<std::string> results;
    for (const auto& port : function.at("outputs"))
        if (!is(port, "hidden")) results.push_back(text(port, "name"));
    return fmt::format("{}({}){}{}", text(function, "name"), fmt::join(arguments, ", "),
                       results.empty() ? "" : " -> ", fmt::join(results, ", "));
}

std::string gradient_words(const Json& function) {
    const Json& gradient = function.at("gradient");
    if (gradient["order"] == "none") return "none";
    static const Phrases known{{"kernel", "first order by a kernel"},
                               {"composition", "any order by a composition"},
                               {"parts", "that of its parts"}};
    std::vector<std::string> list = phrases({{"flags", gradient["routes"]}}, known);
    if (gradient.contains("function"))
        list.push_back(text(gradient, "order") + " order by " + text(gradient, "function"));
    if (!gradient["keeps"].empty()) list.push_back("keeps " + joined(gradient["keeps"]));
    return fmt::format("{}", fmt::join(list, "; "));
}

std::string function_words(const Json& function) {
    const Json& ports = function.at("inputs");
    const bool several = ports.size() > 1 && std::ranges::none_of(ports, [](const Json& p) {
                             return is(p, "mutated");
                         });
    const Phrases known{{"stochastic", "draws random numbers"},
                        {"view", "shares its input's memory"},
                        {"elementwise", several ? "elementwise, inputs broadcast" : "elementwise"},
                        {"addition", "sums gradients"},
                        {"internal", "used only by other functions"}};
    return fmt::format("{}", fmt::join(phrases(function, known), "; "));
}

std::string dtypes_text(const std::string& function, const Json& rows) {
    KernelInfo kernel{};
    kernel.dtypes = rows.get<std::vector<std::vector<std::string>>>();
    try {
        return dtypes_to_string(function_descriptor(function), {&kernel, 1});
    } catch (const PluginError&) {  // the function is not loaded
        return "?";
    }
}

std::vector<std::string> dtypes_words(const Json& function) {
    std::vector<std::string> list;
    for (const auto& [device, rows] : function.at("dtypes").items())
        list.push_back(device + ": " + dtypes_text(text(function, "name"), rows));
    if (list.empty() && is(function, "view")) list.emplace_back("any device and dtype");
    if (function.value("composition", false))
        list.emplace_back(list.empty() ? "those of its parts" : "others by its parts");
    return list;
}

std::string kernel_isa(const Json& kernel) {
    const std::string isa = text(kernel, "isa");
    return isa.empty() ? "baseline" : isa;
}

std::string kernel_words(const Json& kernel) {
    const std::string variant = text(kernel, "variant");
    auto list = kernel.at("flags").get<std::vector<std::string>>();
    if (!variant.empty()) list.insert(list.begin(), "variant " + variant);
    return fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace catena::inspect
