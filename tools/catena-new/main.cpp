// catena-new: creates the project of a plugin or a program.
#include "scaffold.hpp"

#include <fmt/format.h>
#include <boost/program_options.hpp>
#include <command_line.hpp>

#include <iostream>

namespace fs = std::filesystem;
namespace po = boost::program_options;
using namespace catena;

namespace {

constexpr const char* usage =
    "usage: catena-new plugin NAME [OPTION...]\n"
    "       catena-new host NAME [OPTION...]\n\n"
    "Creates a project that builds and passes its tests: a plugin with a function, or a program\n"
    "that loads plugins, calls their functions and trains a net.\n\n";

struct Options {
    std::string kind;
    std::string name;
    std::string lang = "cpp";
    bool cuda = false;
    std::string id;
    std::string output;
};

// Relative to the program: bin and share are in one folder, which may be moved.
fs::path templates_folder() {
    return fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
           "share/catena/templates";
}

// Quotes a path for a shell.
std::string quoted(const fs::path& path) {
    std::string text = path.string();
    if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_./-+=") == text.npos)
        return text;
    for (std::size_t at = 0; (at = text.find('\'', at)) != text.npos; at += 4)
        text.replace(at, 1, "'\\''");
    return "'" + text + "'";
}

// The commands that build the project, from the current folder.
std::string next_steps(const fs::path& folder) {
    const fs::path prefix = templates_folder().parent_path().parent_path().parent_path();
    const bool usual = prefix == "/usr" || prefix == "/usr/local";
    return fmt::format(
        "  cmake -S {0} -B {1}{2}\n"
        "  cmake --build {1}\n"
        "  ctest --test-dir {1} --output-on-failure\n",
        quoted(folder), quoted(folder / "build"),
        usual ? "" : " -DCMAKE_PREFIX_PATH=" + quoted(prefix));
}

int run(const Options& o, const po::variables_map& given) {
    const bool plugin = o.kind == "plugin";
    if (!plugin && o.kind != "host")
        throw po::error(fmt::format("expected plugin or host, got '{}'", o.kind));
    if (o.name.empty()) throw po::error(fmt::format("{}: expected a NAME", o.kind));
    for (const char* option : {"lang", "cuda", "id"}) {
        if (!plugin && !given[option].defaulted())
            throw po::error(fmt::format("--{}: expected with a plugin, got {}", option, o.kind));
    }
    if (o.lang != "c" && o.lang != "cpp")
        throw po::error(fmt::format("--lang: expected c or cpp, got '{}'", o.lang));
    if (o.cuda && o.lang == "c") throw po::error("--cuda: expected --lang cpp, got c");

    scaffold::check_name(o.name);
    if (!plugin) scaffold::check_program(o.name);
    const std::string id = o.id.empty() ? "org.example." + o.name : o.id;
    scaffold::check_id(id);
    const fs::path from = templates_folder();
    std::vector<fs::path> templates = {from / (plugin ? "plugin-" + o.lang : "host")};
    if (o.cuda) templates.push_back(from / "plugin-cuda");
    const fs::path folder = o.output.empty() ? o.name : o.output;
    scaffold::write(templates, {o.name, id}, folder);
    fmt::print("{}: written. Next:\n{}", folder.string(), next_steps(folder));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return run_command("catena-new", [&] {
        Options o;
        po::options_description visible("options");
        // clang-format off
    visible.add_options()
        ("help,h", "print this text")
        ("version", "print the versions of this program and of its ABI")
        ("lang", po::value(&o.lang)->default_value(o.lang), "language of a plugin: c or cpp")
        ("cuda", po::bool_switch(&o.cuda), "also write a CUDA plugin, which is built if nvcc is found")
        ("id", po::value(&o.id)->value_name("ID")->default_value("", "org.example.NAME"),
         "id of a plugin and name of its function")
        ("output", po::value(&o.output)->value_name("DIR"),
         "the folder to write, new or empty; default: NAME");
        // clang-format on
        po::options_description all;
        all.add(visible).add_options()("kind", po::value(&o.kind))("name", po::value(&o.name));
        po::positional_options_description positions;
        positions.add("kind", 1).add("name", 1);
        const po::variables_map given = parse_command_line(
            argc, argv, all, positions,
            po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
        if (given.count("help")) {
            std::cout << usage << visible;
            return 0;
        }
        if (given.count("version")) {
            std::cout << "catena-new " CATENA_VERSION ", ABI " CATENA_ABI_VERSION "\n";
            return 0;
        }
        try {
            return run(o, given);
        } catch (const fs::filesystem_error& error) {
            throw scaffold::Error(fmt::format("[output] {}", error.what()));
        }
    });
}
