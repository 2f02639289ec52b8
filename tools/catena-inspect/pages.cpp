// Formats documents as text, with aligned columns, and as Markdown, with the reference of functions.
#include "inspect.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace catena::inspect {
namespace {

constexpr std::size_t width = 100;
constexpr std::size_t widest = 48;  // of a cell that others are aligned with

// Wraps text at `width` columns, after a space or a |; indents all lines after the first to `column`.
std::string wrapped(std::string_view text, std::size_t column) {
    const std::string indent = '\n' + std::string(column, ' ');
    std::string result;
    for (bool first = true; !text.empty(); first = false) {
        const auto end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!first) result += line.empty() ? "\n" : indent;
        while (column + line.size() > width) {
            auto end = line.find_last_of(" |", width - column);
            if (end == line.npos) end = line.find_first_of(" |");
            if (end == line.npos) break;
            result += line.substr(0, end + (line[end] == '|'));
            result += indent;
            line.remove_prefix(end + 1);
        }
        result += line;
    }
    return result;
}

// Aligns the columns of rows and wraps the last one. A row of one cell is not aligned.
std::string columns(const std::vector<Row>& rows, std::size_t indent) {
    std::vector<std::size_t> widths;
    for (const Row& row : rows) {
        if (row.size() < 2) continue;
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i)
            if (row[i].size() <= widest) widths[i] = std::max(widths[i], row[i].size());
    }
    const std::string aligned(std::accumulate(widths.begin(), widths.end(), indent) +
                                  2 * widths.size() - (widths.empty() ? 0 : 2 + widths.back()),
                              ' ');
    std::string text;
    for (const Row& row : rows) {
        std::string line = row.size() < 2 ? "" : std::string(indent, ' ');
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool last = i + 1 == row.size();
            if (last && i > 0 && row[i - 1].size() > widest && !row[i].empty())
                line += '\n' + aligned + wrapped(row[i], aligned.size());
            else if (last) line += wrapped(row[i], line.size());
            else line += fmt::format("{:<{}}  ", row[i], widths[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

std::string function_text(const Json& f) {
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
                       columns(port_rows(f), 2), columns(rows, 2));
}

std::string functions_text(const Json& list, bool all) {
    if (all) return joined(list, function_text, "\n");
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
    return columns(rows, 2);
}

std::string kernels_text(const Json& list) {
    std::string result;
    std::vector<Row> rows;  // of one function
    std::string function;
    std::string phase;
    for (const auto& k : list) {
        if (text(k, "function") != function) {
            result += columns(rows, 4);
            rows = {{(function.empty() ? "" : "\n") + text(k, "function")}};
            function = text(k, "function");
            phase.clear();
        }
        const std::string now = text(k, "phase") + ", " + text(k, "device");
        if (now != phase) rows.push_back({"  " + (phase = now)});
        rows.push_back({k["priority"].dump(), kernel_isa(k), text(k, "plugin"), kernel_words(k),
                        dtypes_text(function, k["dtypes"])});
    }
    return result + columns(rows, 4);
}

std::string devices_text(const Json& document) {
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
        result += columns(rows, 2) + "\n";
    }
    std::vector<Row> rows{{"extensions"}};
    for (const auto& e : document["extensions"])
        rows.push_back({text(e, "id"), text(e, "device"), "priority " + e["priority"].dump(),
                        text(e, "plugin")});
    if (rows.size() == 1) rows.push_back({"  none"});
    return result + columns(rows, 2);
}

std::string coverage_text(const Json& document) {
    std::string result;
    for (const auto& f : document["coverage"]) {
        result += text(f, "function") + '\n';
        if (is(f, "view")) result += "  a view: nothing to compute\n";
        for (const auto& line : f["kernels"]) {
            std::vector<Row> rows;
            for (const auto& [device, kernels] : line["devices"].items())
                rows.push_back({device, kernels == "" ? "none" : kernels.get<std::string>()});
            result += "  " + text(line, "dtypes") + '\n' + columns(rows, 4);
        }
    }
    return result;
}

// ---- Markdown

constexpr const char* functions_head =
    "# Functions\n\n"
    "<!-- Written by catena-inspect from the descriptions in the plugins. -->\n\n"
    "In C++, call a function through the wrapper whose signature is shown. It is in "
    "`<catena/functions.hpp>`, or in a header written by `catena-inspect header`. Called on "
    "`Variable`s it records the graph; called on `Array`s it returns `Array`s and records "
    "nothing. Inputs and outputs with the same letter have the same dtype. Functions that "
    "update an input in place have no wrapper; optimizers call them.\n\n"
    "A gradient is a kernel (fast, first order), a composition of other functions, or a "
    "function; the last two can be differentiated again. The pages also list the values that "
    "are kept for backward. An example is a call as text: in `x=(2,3)[0.5,2] axis=1`, x has "
    "shape (2, 3) and values from 0.5 to 2.\n\n";

std::string cell(std::string text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '|') text.insert(i++, 1, '\\');
        if (text[i] == '\n') text[i] = ' ';
    }
    return text;
}

std::string table(const Row& head, const std::vector<Row>& rows) {
    if (rows.empty()) return {};
    const auto line = [](const Row& row) {
        std::string text = "|";
        for (const auto& c : row) text += c.empty() ? " |" : " " + cell(c) + " |";
        return text + '\n';
    };
    std::string text = line(head) + "|";
    for (std::size_t i = 0; i < head.size(); ++i) text += "---|";
    text += '\n';
    for (const Row& row : rows) text += line(row);
    return text + '\n';
}

std::string code(const std::string& text) { return text.empty() ? text : "`" + text + "`"; }

std::string function_section(const Json& f) {
    const std::string cpp = text(f, "cpp");
    const std::string signature = cpp.empty() ? call(f) : cpp;
    const std::string name = text(f, "name");
    std::string result = fmt::format("### {}\n\n", short_name(name));
    result +=
        signature.size() <= width ? code(signature) : "```cpp\n" + broken(signature) + "\n```";
    result += "\n\n" + text(f, "doc") + "\n\n";
    for (const Row& row : port_rows(f))
        result += fmt::format("- {} `{}` ({}){}{}\n", row[0], row[1], row[2],
                              row[3].empty() ? "" : ": ", row[3]);
    const auto fact = [&](const char* what, const std::string& words) {
        if (!words.empty()) result += fmt::format("- {}: {}\n", what, words);
    };
    if (const int version = f["version"]; version != 1) fact("version", std::to_string(version));
    fact("behaviour", function_words(f));
    fact("dtypes", fmt::format("{}", fmt::join(dtypes_words(f), "; ")));
    fact("gradient", gradient_words(f));
    fact("examples", joined(f["examples"], [](const Json& example) { return code(example); }));
    return result + '\n';
}

std::string functions_page(const Json& list) {
    std::string families;
    std::string pages;
    std::string plugin;
    std::string prefix;  // of the functions of a plugin
    std::string page;
    std::vector<std::string> contents;
    const auto finish = [&] {
        if (contents.empty()) return;
        const std::string name = short_name(plugin);
        families += fmt::format("- [{0}](#{0}): {1} functions\n", name, contents.size());
        pages += fmt::format("## {}\n\nPlugin `{}`, full names `{}NAME`: {}\n\n{}", name, plugin,
                             prefix, fmt::join(contents, ", "), page);
        contents.clear();
        page.clear();
    };
    for (const auto& f : list) {
        if (is(f, "internal")) continue;
        if (text(f, "plugin") != plugin) {
            finish();
            plugin = text(f, "plugin");
        }
        const std::string name = short_name(text(f, "name"));
        contents.push_back(fmt::format("[{0}](#{0})", name));
        prefix = text(f, "name").substr(0, text(f, "name").size() - name.size());
        page += function_section(f);
    }
    finish();
    std::string result = functions_head + families + '\n' + pages;
    result.pop_back();  // one newline at the end
    return result;
}

std::string plugins_table(const Json& document) {
    std::vector<Row> rows;
    for (const auto& [list, state, why] : {std::tuple{"loaded", "loaded", ""},
                                           {"left_out", "left out", ""},
                                           {"overridden", "overridden by ", "by"},
                                           {"refused", "refused: ", "reason"}})
        for (const auto& p : document[list])
            rows.push_back({code(p.value("id", "")), p.value("version", ""),
                            state + p.value(why, ""), text(p, "file")});
    return table({"plugin", "version", "what became of it", "file"}, rows);
}

std::string kernels_table(const Json& list) {
    std::vector<Row> rows;
    for (const auto& k : list)
        rows.push_back({code(text(k, "function")), text(k, "phase"), text(k, "device"),
                        k["priority"].dump(), kernel_isa(k),
                        dtypes_text(text(k, "function"), k["dtypes"]), kernel_words(k),
                        code(text(k, "plugin"))});
    return table({"function", "phase", "device", "priority", "isa", "dtypes", "more", "plugin"},
                 rows);
}

constexpr const char* coverage_head =
    "# Kernels\n\n"
    "<!-- Written by catena-inspect from the descriptions in the plugins. -->\n\n"
    "The kernels of each function on each device, by dtype, in the order in which they are "
    "tried: the plugin and, in parentheses, the name of the kernel. `forward` or `backward` "
    "follows a kernel that implements only this phase. Functions marked * are parts of other "
    "functions' gradients.\n\n";

std::string coverage_page(const Json& document) {
    Row head = {"function", "dtypes"};
    for (const auto& device : document["devices"]) head.push_back(device.get<std::string>());
    std::vector<Row> rows;
    for (const auto& f : document["coverage"]) {
        std::string name = code(text(f, "function"));
        if (is(f, "internal")) name += " *";
        if (is(f, "view")) {
            rows.push_back({name, "any"});
            rows.back().resize(head.size(), "a view: nothing to compute");
        }
        for (const auto& line : f["kernels"]) {
            rows.push_back({name, text(line, "dtypes")});
            for (const auto& [device, kernels] : line["devices"].items())
                rows.back().push_back(kernels == "" ? "**none**" : kernels.get<std::string>());
            name.clear();
        }
    }
    std::string page = coverage_head + table(head, rows);
    page.pop_back();  // one newline at the end
    return page;
}

std::string devices_tables(const Json& document) {
    std::vector<Row> backends;
    for (const auto& b : document["backends"]) {
        const std::string names =
            joined(b["devices"], [](const Json& d) { return text(d, "name"); });
        backends.push_back({code(text(b, "name")), text(b, "doc"), names, code(text(b, "plugin"))});
    }
    std::vector<Row> extensions;
    for (const auto& e : document["extensions"])
        extensions.push_back({code(text(e, "id")), text(e, "device"), e["priority"].dump(),
                              code(text(e, "plugin"))});
    return table({"backend", "what it is", "devices", "plugin"}, backends) +
           table({"extension", "device", "priority", "plugin"}, extensions);
}

std::string manifests_page(const Json& list, bool markdown) {
    std::string result;
    for (const auto& m : list) {
        if (m.contains("error")) continue;
        const std::string file = text(m, "file");
        const std::vector<Row> rows = manifest_rows(m);
        if (markdown) result += fmt::format("## {}\n\n{}", file, table({"", ""}, rows));
        else result += (result.empty() ? "" : "\n") + file + '\n' + columns(rows, 2);
    }
    return result;
}

}  // namespace

std::string to_text(const Json& document, bool all) {
    if (document.contains("manifests")) return manifests_page(document["manifests"], false);
    if (document.contains("functions")) return functions_text(document["functions"], all);
    if (document.contains("coverage")) return coverage_text(document);
    if (document.contains("kernels")) return kernels_text(document["kernels"]);
    return devices_text(document);
}

std::string to_markdown(const Json& document) {
    if (document.contains("manifests")) return manifests_page(document["manifests"], true);
    if (document.contains("functions")) return functions_page(document["functions"]);
    if (document.contains("coverage")) return coverage_page(document);
    if (document.contains("kernels")) return kernels_table(document["kernels"]);
    return document.contains("loaded") ? plugins_table(document) : devices_tables(document);
}

}  // namespace catena::inspect
