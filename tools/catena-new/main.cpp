// catena-new: creates the project of a plugin or a program.
#include <fmt/format.h>
#include <boost/program_options.hpp>
#include <command_line.hpp>
#include <ids.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <stdexcept>

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

using Error = std::runtime_error;

// The names that replace my_name, MyName and org.example.my_name in the templates.
struct Names {
    std::string name;  // lower case, with underscores
    std::string id;    // of the plugin and of its function
};

constexpr std::size_t max_id = 95;  // characters that fit into a manifest

// Targets that CMake's generators create, so that a program cannot have these names. A plugin can,
// because none of its targets is called just NAME.
constexpr std::string_view targets[] = {
    "all",        "clean",          "codegen",    "depend",
    "edit_cache", "help",           "install",    "list_install_components",
    "package",    "package_source", "preinstall", "rebuild_cache",
    "test"};

std::string pascal(const std::string& name) {
    std::string result;
    bool start = true;
    for (const char c : name) {
        if (c != '_') result += start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
        start = c == '_';
    }
    return result;
}

// Replaces the words in one pass, because a replacement may contain them, too.
std::string replaced(std::string_view text, const Names& names) {
    const std::pair<std::string_view, std::string> words[] = {
        {"org.example.my_name", names.id}, {"my_name", names.name}, {"MyName", pascal(names.name)}};
    std::string result;
    while (!text.empty()) {
        const auto* word =
            std::ranges::find_if(words, [&](const auto& w) { return text.starts_with(w.first); });
        const bool found = word != std::end(words);
        result += found ? std::string_view(word->second) : text.substr(0, 1);
        text.remove_prefix(found ? word->first.size() : 1);
    }
    return result;
}

std::string read_file(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::string text;
    for (char c = 0; in.get(c);) text += c;
    if (!in.eof()) throw Error(fmt::format("[template] {}: cannot be read", file.string()));
    return text;
}

void save(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out << text << std::flush;
    if (!out) throw Error(fmt::format("[output] {}: cannot be written", file.string()));
}

// A temporary folder, which the destructor removes. keep() renames it to `folder` or, if it exists,
// moves the entries there: `folder` may be a mount point or a shell's working directory.
class Draft {
public:
    explicit Draft(const fs::path& folder) : folder_(folder), into_(fs::exists(folder)) {
        const fs::path place = into_ ? folder : folder.parent_path();
        path_ = place / fmt::format(".{}.{}", folder.filename().string(), ::getpid());
        fs::create_directories(place);
        if (!fs::create_directory(path_)) throw taken(path_);
    }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;
    ~Draft() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }
    void keep() {
        if (into_) move_entries();
        else fs::rename(path_, folder_);  // fails if the folder now has entries
    }

private:
    static Error taken(const fs::path& path) {
        return Error(fmt::format("[output] {}: expected to be new", path.string()));
    }
    void move_entries() {
        std::vector<fs::path> names, moved;
        for (const auto& entry : fs::directory_iterator(path_))
            names.push_back(entry.path().filename());
        try {
            for (const fs::path& name : names) {
                if (fs::exists(fs::symlink_status(folder_ / name))) throw taken(folder_ / name);
                fs::rename(path_ / name, folder_ / name);
                moved.push_back(name);
            }
        } catch (...) {
            std::error_code ignored;
            for (const fs::path& name : moved) fs::rename(folder_ / name, path_ / name, ignored);
            throw;
        }
    }

    fs::path folder_;
    bool into_;
    fs::path path_;
};

// Throws unless the name is valid for files, targets and identifiers.
void check_name(const std::string& name) {
    static const std::regex form("[a-z][a-z0-9]*(_[a-z0-9]+)*");
    if (name.size() > 60 || !std::regex_match(name, form))
        throw Error(
            fmt::format("[name] expected lower-case letters, digits and single underscores, "
                        "a letter first, at most 60, got '{}'",
                        name));
}

// Throws if the name is one of CMake's own targets.
void check_program(const std::string& name) {
    if (std::ranges::count(targets, name) > 0)
        throw Error(fmt::format("[name] expected none of CMake's own targets, got '{}'", name));
}

void check_id(const std::string& id) {
    if (!is_id(id)) throw Error(fmt::format("[id] expected {}, got '{}'", id_rule, id));
    if (id.size() > max_id)
        throw Error(fmt::format("[id] expected at most {} characters, got '{}'", max_id, id));
    if (id.starts_with("catena.") || id.starts_with("org.catena."))
        throw Error(fmt::format("[id] expected one of your own, got '{}'", id));
}

// Writes the files of the templates to a folder that is new or empty; a later template replaces
// files of an earlier one. Writes all files, or none if it fails.
void write_project(const std::vector<fs::path>& templates, const Names& names,
                   const fs::path& folder) {
    std::map<fs::path, std::string> files;
    for (const fs::path& source : templates) {
        if (!fs::is_directory(source))
            throw Error(
                fmt::format("[template] {}: expected the folder, as it is installed with "
                            "catena, got none",
                            source.string()));
        for (const auto& item : fs::recursive_directory_iterator(source)) {
            if (!item.is_regular_file()) continue;
            const std::string name = item.path().lexically_relative(source).string();
            files[replaced(name, names)] = replaced(read_file(item.path()), names);
        }
    }
    // Resolves links and dots in the existing part of the path.
    const fs::path target = fs::weakly_canonical(fs::absolute(folder / "").parent_path());
    if (fs::exists(fs::symlink_status(target)) &&
        !(fs::is_directory(target) && fs::is_empty(target)))
        throw Error(fmt::format("[output] {}: expected to be new or an empty folder, got {}",
                                target.string(),
                                fs::is_directory(target) ? "something in it" : "no folder"));
    Draft draft(target);
    for (const auto& [name, text] : files) save(draft.path() / name, text);
    draft.keep();
}

// Returns the path relative to the program, since the folder of bin and share may be moved.
fs::path templates_folder() {
    return fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
           "share/catena/templates";
}

// Returns the commands that build and test the project from the current folder.
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

    check_name(name);
    if (!plugin) check_program(name);
    const std::string id = o.id.empty() ? "org.example." + name : o.id;
    check_id(id);
    const fs::path from = templates_folder();
    std::vector<fs::path> templates = {from / (plugin ? "plugin-" + o.lang : "host")};
    if (o.cuda) templates.push_back(from / "plugin-cuda");
    const fs::path folder = o.output.empty() ? name : o.output;
    write_project(templates, {name, id}, folder);
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
            throw Error(fmt::format("[output] {}", error.what()));
        }
    });
}
