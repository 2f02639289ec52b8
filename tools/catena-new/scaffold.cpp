// Copies templates under a new name.
#include "scaffold.hpp"

#include <fmt/format.h>

#include <ids.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string_view>
#include <utility>

namespace fs = std::filesystem;

namespace catena::scaffold {
namespace {

constexpr std::size_t max_id = 95;  // what a manifest has room for

// Targets that CMake's generators make, so that no program can be called that. In a plugin nothing
// is called NAME alone.
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

// In one pass: what is put in may hold these words too.
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

std::string read(const fs::path& file) {
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

// A folder that becomes the one that is wanted, or is gone again. Where that one is there already, it
// is kept: it may be a mount point, or where the user's shell is.
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
        else fs::rename(path_, folder_);  // refused if somebody has filled it by now
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

}  // namespace

void check_name(const std::string& name) {
    static const std::regex form("[a-z][a-z0-9]*(_[a-z0-9]+)*");
    if (name.size() > 60 || !std::regex_match(name, form))
        throw Error(
            fmt::format("[name] expected lower-case letters, digits and single underscores, "
                        "a letter first, at most 60, got '{}'",
                        name));
}

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

void write(const std::vector<fs::path>& templates, const Names& names, const fs::path& folder) {
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
            files[replaced(name, names)] = replaced(read(item.path()), names);
        }
    }
    // Without links and dots, as far as it is there.
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

}  // namespace catena::scaffold
