// Documents as text: aligned, in short lines.
#include "inspect.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace catena::inspect {
namespace {

constexpr std::size_t width = 100;

// Lines of at most `width` columns; those that follow the first are indented.
std::string wrapped(std::string_view text, std::size_t column) {
    const std::string indent = '\n' + std::string(column, ' ');
    std::string result;
    for (bool first = true; !text.empty(); first = false) {
        const auto end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!first) result += line.empty() ? "\n" : indent;
        while (column + line.size() > width) {
            auto space = line.rfind(' ', width - column);
            if (space == line.npos) space = line.find(' ');
            if (space == line.npos) break;
            result += line.substr(0, space);
            result += indent;
            line.remove_prefix(space + 1);
        }
        result += line;
    }
    return result;
}

// Columns as wide as they need; the last is wrapped. A row of one cell stands alone.
std::string table(const std::vector<Row>& rows, std::size_t indent) {
    std::vector<std::size_t> widths;
    for (const Row& row : rows) {
        if (row.size() < 2) continue;
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const Row& row : rows) {
        std::string line = row.size() < 2 ? "" : std::string(indent, ' ');
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i + 1 == row.size()) line += wrapped(row[i], line.size());
            else line += fmt::format("{:<{}}  ", row[i], widths[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

std::string of_manifests(const Json& list) {
    std::string result;
    for (const auto& m : list) {
        if (m.contains("error")) continue;
        result += fmt::format("{}{}\n{}", result.empty() ? "" : "\n", text(m, "file"),
                              table(manifest_rows(m), 2));
    }
    return result;
}

std::string of_function(const Json& f) {
    const auto examples = f["examples"].get<std::vector<std::string>>();
    std::vector<Row> rows{{"behaviour", function_words(f)},
                          {"gradient", gradient_words(f)},
                          {"dtypes", fmt::format("{}", fmt::join(dtypes_words(f), "\n"))},
                          {"plugin", fmt::format("{}, version {} of the function",
                                                 text(f, "plugin"), f["version"].dump())},
                          {"C++", broken(text(f, "cpp"))},
                          {"examples", fmt::format("{}", fmt::join(examples, "\n"))}};
    std::erase_if(rows, [](const Row& row) { return row[1].empty(); });
    return fmt::format("{}\n\n    {}\n\n{}\n{}", broken(call(f)), wrapped(text(f, "doc"), 4),
                       table(port_rows(f), 2), table(rows, 2));
}

std::string of_functions(const Json& list, bool all) {
    std::string result;
    if (all)
        for (const auto& f : list) result += (result.empty() ? "" : "\n") + of_function(f);
    if (all) return result;
    std::vector<Row> rows;
    std::string plugin;
    for (const auto& f : list) {
        if (is(f, "internal")) continue;
        if (text(f, "plugin") != plugin) {
            if (!rows.empty()) rows.push_back({""});
            rows.push_back({plugin = text(f, "plugin")});
        }
        rows.push_back({text(f, "name"), summary(f)});
    }
    return table(rows, 2);
}

std::string of_kernels(const Json& list) {
    std::string result;
    std::vector<Row> rows;  // of one function
    std::string function;
    std::string phase;
    for (const auto& k : list) {
        if (text(k, "function") != function) {
            result += table(rows, 4);
            rows = {{(function.empty() ? "" : "\n") + text(k, "function")}};
            function = text(k, "function");
            phase.clear();
        }
        const std::string now = text(k, "phase") + ", " + text(k, "device");
        if (now != phase) rows.push_back({"  " + (phase = now)});
        rows.push_back({k["priority"].dump(), kernel_isa(k), text(k, "plugin"), kernel_words(k),
                        dtypes_text(function, k["dtypes"])});
    }
    return result + table(rows, 4);
}

std::string of_devices(const Json& document) {
    std::string result;
    for (const auto& b : document["backends"]) {
        std::vector<Row> rows{{fmt::format("{}: {}", text(b, "name"), text(b, "doc"))},
                              {"plugin", text(b, "plugin")}};
        for (const auto& d : b["devices"])
            rows.push_back({text(d, "name"), d.contains("error") ? text(d, "error")
                                             : d.contains("about")
                                                 ? text(d, "about")
                                                 : d["threads"].dump() + " threads"});
        const std::string reason = b.value("reason", "");
        if (b["devices"].empty())
            rows.push_back({"devices", reason.empty() ? "none found" : "none found: " + reason});
        result += table(rows, 2) + "\n";
    }
    std::vector<Row> rows{{"extensions"}};
    for (const auto& e : document["extensions"])
        rows.push_back({text(e, "id"), text(e, "device"), "priority " + e["priority"].dump(),
                        text(e, "plugin")});
    if (rows.size() == 1) rows.push_back({"  none"});
    return result + table(rows, 2);
}

std::string of_coverage(const Json& document) {
    std::string result;
    for (const auto& f : document["coverage"]) {
        result += text(f, "function") + '\n';
        if (is(f, "view")) result += "  a view: nothing to compute\n";
        for (const auto& line : f["kernels"]) {
            std::vector<Row> rows;
            for (const auto& [device, kernels] : line["devices"].items())
                rows.push_back({device, kernels == "" ? "none" : kernels.get<std::string>()});
            result += "  " + text(line, "dtypes") + '\n' + table(rows, 4);
        }
    }
    return result;
}

}  // namespace

std::string to_text(const Json& document, bool all) {
    if (document.contains("manifests")) return of_manifests(document["manifests"]);
    if (document.contains("functions")) return of_functions(document["functions"], all);
    if (document.contains("coverage")) return of_coverage(document);
    if (document.contains("kernels")) return of_kernels(document["kernels"]);
    return of_devices(document);
}

}  // namespace catena::inspect
