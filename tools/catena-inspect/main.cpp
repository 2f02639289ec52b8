// catena-inspect: shows the contents of plugins, and writes typed wrappers of their functions.
#include "inspect.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/core/tables.hpp>
#include <catena/data_error.hpp>
#include <catena/write_file.hpp>

#include <fmt/format.h>
#include <boost/program_options.hpp>
#include <command_line.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

namespace fs = std::filesystem;
namespace po = boost::program_options;
using namespace catena;

namespace {

constexpr const char* usage =
    "usage: catena-inspect [OPTION...] PLUGIN.catena...\n"
    "       catena-inspect [OPTION...] COMMAND [NAME...]\n\n"
    "Shows the manifest, needed libraries and exports of files, without running them.\n"
    "With a command, loads the installed plugins and the named files and shows:\n\n"
    "  functions  meaning, inputs, attributes, gradients, examples\n"
    "  kernels    all kernels, in the order in which they are tried\n"
    "  coverage   the kernels of each function by device and dtype\n"
    "  devices    backends with their devices, and extensions\n"
    "  plugins    loaded and refused plugins, with reasons\n"
    "  header     a C++ header with a typed wrapper for each function\n"
    "  stubs      types of the functions for Python's type checkers\n"
    "  optimizers         C++ classes of optimizers, from update functions\n"
    "  python-optimizers  the same for the Python package catena\n\n"
    "NAME: a function (relu for catena.relu), the id of a plugin or a file; default: all.\n\n"
    "  catena-inspect swish.catena\n"
    "  catena-inspect functions swish.catena --format markdown --output swish.md\n"
    "  catena-inspect functions softmax\n"
    "  catena-inspect kernels org.catena.math --format json\n"
    "  catena-inspect header swish.catena --prefix org.example. --namespace example -o "
    "swish.hpp\n\n";

struct Options {
    std::string format = "text";
    std::string output = "-";
    std::string compare;
    std::vector<std::string> folders;
    std::vector<std::string> without;
    bool all = false;
    inspect::HeaderOptions header;
};

std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Writes a file only if its content changes, to avoid unnecessary builds.
void update_file(const fs::path& file, const std::string& text) {
    if (fs::is_regular_file(file) && contents(file) == text) return;
    if (file.has_parent_path()) fs::create_directories(file.parent_path());
    write_file(file, text);  // refuses devices and links
}

// Throws an error that shows the first line that differs.
void compare(const fs::path& file, const std::string& text) {
    if (!fs::is_regular_file(file))
        throw Error(fmt::format("[compare] {}: expected a file, {}", file.string(),
                                fs::exists(file) ? "got no regular one" : "there is none"));
    std::istringstream before(contents(file)), now(text);
    std::string got, expected;
    for (int line = 1;; ++line) {
        const bool more = bool(std::getline(before, got));
        const bool wanted = bool(std::getline(now, expected));
        if (!more && !wanted) return;
        if (more && wanted && got == expected) continue;
        throw Error(fmt::format("[compare] {}: is not of today: line {}: expected {}, got {}",
                                file.string(), line, wanted ? "'" + expected + "'" : "its end",
                                more ? "'" + got + "'" : "its end"));
    }
}

// Commands that show something, and those that write source code.
using Show = inspect::Json (*)(const inspect::Choice&);
const std::map<std::string, Show> shows{{"functions", inspect::functions},
                                        {"kernels", inspect::kernels},
                                        {"coverage", inspect::coverage},
                                        {"devices", inspect::devices},
                                        {"plugins", inspect::plugins}};
using Write = std::string (*)(const inspect::HeaderOptions&);
const std::map<std::string, Write> writers{{"header", inspect::write_header},
                                           {"stubs", inspect::write_stubs},
                                           {"optimizers", inspect::write_optimizers},
                                           {"python-optimizers", inspect::write_python_optimizers}};

bool is_command(const std::string& word) { return shows.contains(word) || writers.contains(word); }

bool is_file(const std::string& word) {
    return word.find('/') != word.npos || word.ends_with(".catena");
}

// Returns the function with this name, or all that end with it: relu for catena.relu.
std::vector<std::string> named(const std::string& name) {
    auto list = function_names();
    if (std::ranges::count(list, name) > 0) return {name};
    std::erase_if(list, [&](const std::string& f) { return !f.ends_with('.' + name); });
    return list;
}

// Loads the plugins, and returns which plugins and functions the names select.
inspect::Choice load(const std::string& command, const std::vector<std::string>& names,
                     const Options& o) {
    inspect::Choice choice;
    std::vector<std::string> files = names;
    std::erase_if(files, [](const auto& name) { return !is_file(name); });
    const auto report = inspect::load_plugins_of(files, o.folders, o.without);
    for (const auto& name : names) {
        if (is_file(name)) {
            choice.plugins.push_back(read_manifest(name).id);
        } else if (std::ranges::count(report.loaded, name, &LoadedPlugin::id) > 0) {
            choice.plugins.push_back(name);
        } else if (const auto found = named(name); !found.empty()) {
            choice.functions.insert(choice.functions.end(), found.begin(), found.end());
        } else {
            throw InvalidError(
                fmt::format("[{}] expected a function, the id of a loaded plugin or a file, "
                            "got '{}'",
                            command, name));
        }
    }
    return choice;
}

std::string source(const std::string& command, const inspect::Choice& choice, const Options& o) {
    const Write write = writers.at(command);
    // A refused plugin is an error, since its functions would be missing.
    inspect::HeaderOptions wanted = o.header;
    if (choice.plugins.empty() && choice.functions.empty()) {
        const std::string refused = refusals(plugin_report());
        if (!refused.empty()) throw PluginError(fmt::format("[{}] {}", command, refused));
        return write(wanted);
    }
    const auto document = inspect::functions(choice);
    for (const auto& f : document["functions"])
        wanted.functions.push_back(f["name"].get<std::string>());
    const auto fits = [&](const std::string& name) { return name.starts_with(wanted.prefix); };
    if (std::ranges::none_of(wanted.functions, fits))
        throw InvalidError(fmt::format(
            "[{}] --prefix: expected the beginning of the functions' names ({}), got '{}'", command,
            wanted.functions.empty() ? "there are none" : wanted.functions[0], wanted.prefix));
    return write(wanted);
}

// Replaces control characters, which would affect the terminal; files may contain any text.
std::string harmless(std::string text) {
    const auto control = [](unsigned char c) { return (c < ' ' && c != '\n') || c == 0x7f; };
    std::ranges::replace_if(text, control, '?');
    return text;
}

std::string show(const inspect::Json& document, const Options& o, bool all) {
    if (o.format == "text") return harmless(inspect::to_text(document, all));
    if (o.format == "markdown") return harmless(inspect::to_markdown(document));
    inspect::Json json{{"format", 1}};
    json.update(document);
    return json.dump(2, ' ', false, inspect::Json::error_handler_t::replace) + '\n';
}

int run(const Options& o, const std::vector<std::string>& words) {
    const std::string& command = words[0];
    const std::vector<std::string> names(words.begin() + 1, words.end());
    std::string text;
    int result = 0;
    if (!is_command(command)) {
        const auto document = inspect::manifests({words.begin(), words.end()});
        for (const auto& file : document["manifests"]) {
            if (!file.contains("error")) continue;
            std::cerr << fmt::format("catena-inspect: {}: {}\n", file["file"].get<std::string>(),
                                     file["error"].get<std::string>());
            result = 1;
        }
        text = show(document, o, true);
    } else {
        const auto choice = load(command, names, o);
        const bool all = o.all || !choice.functions.empty();
        if (writers.contains(command)) text = source(command, choice, o);
        else if (command == "plugins" && o.format == "text")
            text = to_string(plugin_report()) + '\n';
        else text = show(shows.at(command)(choice), o, all);
    }
    if (!o.compare.empty()) compare(o.compare, text);
    else if (o.output == "-") fmt::print("{}", text);
    else update_file(o.output, text);
    return result;
}

void check(const Options& o, const std::vector<std::string>& words) {
    need_option(!words.empty(), "expected a COMMAND or a file");
    need_option(is_command(words[0]) || is_file(words[0]) || fs::exists(words[0]),
                fmt::format("expected a COMMAND or a file, got '{}'", words[0]));
    need_option(words[0] != "plugins" || words.size() == 1,
                fmt::format("plugins: expected no NAME, got '{}'", words.back()));
    need_option(inspect::is_namespace(o.header.space),
                fmt::format("--namespace: expected names of C++, with :: between them, got '{}'",
                            o.header.space));
    need_option(o.format == "text" || o.format == "json" || o.format == "markdown",
                fmt::format("--format: expected text, json or markdown, got '{}'", o.format));
}

}  // namespace

int main(int argc, char** argv) {
    return run_command("catena-inspect", [&] {
        Options o;
        ToolOptions tool;
        // clang-format off
        tool.options.add_options()
            ("format,f", po::value(&o.format)->value_name("FORMAT"),
             "text (default), json or markdown")
            ("all,a", po::bool_switch(&o.all), "functions: show all details of each")
            ("output,o", po::value(&o.output)->value_name("FILE"), "output file")
            ("compare", po::value(&o.compare)->value_name("FILE"),
             "write nothing; fail if FILE differs from the output")
            ("plugins", po::value(&o.folders)->value_name("DIR"),
             "load plugins only from DIR. May be repeated")
            ("without", po::value(&o.without)->value_name("PLUGIN"),
             "do not load the plugin with this id. May be repeated")
            ("prefix", po::value(&o.header.prefix)->value_name("TEXT"),
             "header, stubs: prefix of the functions (default catena.)")
            ("omit", po::value(&o.header.omitted)->value_name("NAME"),
             "header, stubs: leave out the function PREFIX NAME. May be repeated")
            ("namespace", po::value(&o.header.space)->value_name("NAME"),
             "header, optimizers: namespace (default catena::functions)");
        // clang-format on
        if (!tool.read(argc, argv, usage,
                       "catena-inspect " CATENA_VERSION ", ABI " CATENA_ABI_VERSION, -1))
            return 0;
        check(o, tool.words);
        return run(o, tool.words);
    });
}
