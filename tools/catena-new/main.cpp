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

// The commands that build the project, from the current folder.
std::string next_steps(const fs::path& folder) {
    const fs::path prefix = templates_folder().parent_path().parent_path().parent_path();
    const bool usual = prefix == "/usr" || prefix == "/usr/local";
    return fmt::format(
        "  cmake -S {0} -B {1}{2}\n"
        "  cmake --build {1}\n"
        "  ctest --test-dir {1} --output-on-failure\n",
        shell_word(folder), shell_word(folder / "build"),
        usual ? "" : " -DCMAKE_PREFIX_PATH=" + shell_word(prefix));
}

int run(const Options& o, const ToolOptions& tool) {
    need_option(!tool.words.empty(), "expected plugin or host");
    const std::string& kind = tool.words[0];
    const bool plugin = kind == "plugin";
    need_option(plugin || kind == "host", fmt::format("expected plugin or host, got '{}'", kind));
    need_option(tool.words.size() > 1, fmt::format("{}: expected a NAME", kind));
    const std::string& name = tool.words[1];
    for (const char* option : {"lang", "cuda", "id"})
        need_option(plugin || tool.given[option].defaulted(),
                    fmt::format("--{}: expected with a plugin, got {}", option, kind));
    need_option(o.lang == "c" || o.lang == "cpp",
                fmt::format("--lang: expected c or cpp, got '{}'", o.lang));
    need_option(!o.cuda || o.lang == "cpp", "--cuda: expected --lang cpp, got c");

    scaffold::check_name(name);
    if (!plugin) scaffold::check_program(name);
    const std::string id = o.id.empty() ? "org.example." + name : o.id;
    scaffold::check_id(id);
    const fs::path from = templates_folder();
    std::vector<fs::path> templates = {from / (plugin ? "plugin-" + o.lang : "host")};
    if (o.cuda) templates.push_back(from / "plugin-cuda");
    const fs::path folder = o.output.empty() ? name : o.output;
    scaffold::write(templates, {name, id}, folder);
    fmt::print("{}: written. Next:\n{}", folder.string(), next_steps(folder));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return run_command("catena-new", [&] {
        Options o;
        ToolOptions tool;
        // clang-format off
        tool.options.add_options()
            ("lang", po::value(&o.lang)->default_value(o.lang), "language of a plugin: c or cpp")
            ("cuda", po::bool_switch(&o.cuda),
             "also write a CUDA plugin, which is built if nvcc is found")
            ("id", po::value(&o.id)->value_name("ID")->default_value("", "org.example.NAME"),
             "id of a plugin and name of its function")
            ("output", po::value(&o.output)->value_name("DIR"),
             "the folder to write, new or empty; default: NAME");
        // clang-format on
        if (!tool.read(argc, argv, usage, "catena-new " CATENA_VERSION ", ABI " CATENA_ABI_VERSION,
                       2))
            return 0;
        try {
            return run(o, tool);
        } catch (const fs::filesystem_error& error) {
            throw scaffold::Error(fmt::format("[output] {}", error.what()));
        }
    });
}
