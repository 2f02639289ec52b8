// Documents as Markdown; that of functions is the reference.
#include "inspect.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <tuple>

namespace catena::inspect {
namespace {

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

std::string of_function(const Json& f) {
    const std::string cpp = broken(text(f, "cpp"));
    std::string result =
        fmt::format("### {}\n\n```{}\n{}\n```\n\n{}\n\n", short_name(text(f, "name")),
                    cpp.empty() ? "" : "cpp", cpp.empty() ? broken(call(f)) : cpp, text(f, "doc"));
    std::vector<Row> rows;
    for (const Row& row : port_rows(f)) rows.push_back({row[0], code(row[1]), row[2], row[3]});
    result += table({"", "name", "type", "meaning"}, rows);
    const auto fact = [&](const char* name, const std::string& words) {
        if (!words.empty()) result += fmt::format("- {}: {}\n", name, words);
    };
    fact("name", fmt::format("`{}`, version {}", text(f, "name"), f["version"].get<int>()));
    fact("behaviour", function_words(f));
    fact("dtypes", fmt::format("{}", fmt::join(dtypes_words(f), "; ")));
    fact("gradient", gradient_words(f));
    std::vector<std::string> examples;
    for (const auto& example : f["examples"]) examples.push_back(code(example));
    fact("examples", fmt::format("{}", fmt::join(examples, ", ")));
    return result + '\n';
}

std::string of_functions(const Json& list) {
    std::string families;
    std::string pages;
    std::string plugin;
    std::string page;
    std::vector<Row> contents;
    const auto finish = [&] {
        if (contents.empty()) return;
        const std::string name = short_name(plugin);
        families += fmt::format("- [{0}](#{0}): {1} functions\n", name, contents.size());
        pages += fmt::format("## {}\n\n`{}`\n\n{}{}", name, plugin,
                             table({"function", "what it computes"}, contents), page);
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
        contents.push_back({fmt::format("[{0}](#{0})", name), summary(f)});
        page += of_function(f);
    }
    finish();
    std::string result = functions_head + families + '\n' + pages;
    result.pop_back();  // one newline at the end
    return result;
}

std::string of_manifests(const Json& list) {
    std::string result;
    for (const auto& m : list) {
        if (m.contains("error")) continue;
        result += fmt::format("## {}\n\n", text(m, "file")) + table({"", ""}, manifest_rows(m));
    }
    return result;
}

std::string of_plugins(const Json& document) {
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

std::string of_kernels(const Json& list) {
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

std::string of_coverage(const Json& document) {
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

std::string of_devices(const Json& document) {
    std::vector<Row> backends;
    for (const auto& b : document["backends"]) {
        std::vector<std::string> names;
        for (const auto& d : b["devices"]) names.push_back(text(d, "name"));
        backends.push_back({code(text(b, "name")), text(b, "doc"),
                            fmt::format("{}", fmt::join(names, ", ")), code(text(b, "plugin"))});
    }
    std::vector<Row> extensions;
    for (const auto& e : document["extensions"])
        extensions.push_back({code(text(e, "id")), text(e, "device"), e["priority"].dump(),
                              code(text(e, "plugin"))});
    return table({"backend", "what it is", "devices", "plugin"}, backends) +
           table({"extension", "device", "priority", "plugin"}, extensions);
}

}  // namespace

std::string to_markdown(const Json& document) {
    if (document.contains("manifests")) return of_manifests(document["manifests"]);
    if (document.contains("functions")) return of_functions(document["functions"]);
    if (document.contains("coverage")) return of_coverage(document);
    if (document.contains("kernels")) return of_kernels(document["kernels"]);
    return document.contains("loaded") ? of_plugins(document) : of_devices(document);
}

}  // namespace catena::inspect
