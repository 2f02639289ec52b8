// Checks that the program catena loads the plugin. Its core applies its own rules for refusing
// plugins; catena-check does not repeat them.
#include "check.hpp"

#include <command_line.hpp>
#include <parse_json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <system_error>

namespace catena::check::load_host {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A temporary folder of links to plugins, with names that are loaded in the order of add().
class Links {
public:
    Links() {
        std::string name = (fs::temp_directory_path() / "catena-check-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr)
            throw std::system_error(errno, std::generic_category(), name);
        folder_ = name;
    }
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;
    ~Links() {
        std::error_code error;
        fs::remove_all(folder_, error);
    }

    const fs::path& folder() const { return folder_; }
    fs::path add(const fs::path& file) {
        const fs::path link = folder_ / fmt::format("{:05}.catena", files_.size());
        fs::create_symlink(file, link);
        files_[link.string()] = file.string();
        return link;
    }
    // Replaces the names of links in a text by those of the files.
    std::string named(std::string text) const {
        for (const auto& [link, file] : files_)
            for (std::size_t at = 0; (at = text.find(link, at)) != text.npos; at += file.size())
                text.replace(at, link.size(), file);
        return text;
    }

private:
    fs::path folder_;
    std::map<std::string, std::string> files_;
};

// Returns the output and status of a command, run without the user's variables CATENA_*, such as
// folders, pins and a lock. They are removed from this process, which runs only this check.
std::pair<std::string, int> output_of(const std::string& command) {
    for (char** entry = environ; *entry != nullptr;)
        if (std::strncmp(*entry, "CATENA_", 7) != 0) ++entry;
        else unsetenv(std::string(*entry, std::strcspn(*entry, "=")).c_str());  // moves later ones
    setenv("CATENA_PLUGIN_LOCK", "off", 1);
    FILE* const pipe = popen(("exec " + command).c_str(), "r");
    if (pipe == nullptr) throw std::system_error(errno, std::generic_category(), "popen");
    std::string text;
    char piece[4096];
    while (const std::size_t n = std::fread(piece, 1, sizeof piece, pipe)) text.append(piece, n);
    return {text, pclose(pipe)};
}

// Returns for each path why the plugin is refused, or "".
std::map<std::string, std::string> loads(const fs::path& program,
                                         const std::vector<std::string>& folders) {
    std::string command = shell_word(program) + " plugins --json";
    for (const std::string& folder : folders) command += " --plugins " + shell_word(folder);
    const auto [text, status] = output_of(command);
    // The report follows the output of plugins.
    const std::size_t begin = text.rfind("{\n  \"");
    const json report = begin == text.npos ? json() : catena::parse_json(text.substr(begin));
    if (WIFSIGNALED(status))  // perhaps at exit, after the report
        throw std::runtime_error(fmt::format("catena crashed: {}", strsignal(WTERMSIG(status))));
    if (!report.is_object())
        throw std::runtime_error(
            fmt::format("catena ended with exit code {} and no report", WEXITSTATUS(status)));
    std::map<std::string, std::string> result;
    for (const json& plugin : report["plugins"])
        result[plugin["path"]] = plugin["state"] == "refused" ? plugin["reason"] : "";
    return result;
}

void ask(const fs::path& program, const Subject& subject, Findings& findings) {
    Links links;
    for (const fs::path& file : subject.with) links.add(file);
    const std::string mine = links.add(subject.file).string();
    std::vector<std::string> folders = {links.folder().string()};
    const char* const set = std::getenv("CATENA_TESTING_PLUGINS");
    const std::string own = set != nullptr ? set : "";
    if (!own.empty()) folders.push_back(own);

    std::map<std::string, std::string> without;  // the states of catena's own plugins alone
    try {
        if (!own.empty()) without = loads(program, {own});
    } catch (const std::exception& e) {
        return findings.skip("without the plugin: {}", e.what());
    }
    doing("catena plugins");
    const auto states = loads(program, folders);
    const auto found = states.find(mine);
    if (found == states.end())
        return findings.fail("expected that catena tells of it, got nothing");
    // An untrusted owner or mode of the file or its folder is not a failure of the plugin.
    for (const char* const trust : {"owner of the ", "mode of the "})
        if (found->second.find(trust) != std::string::npos)
            return findings.skip("where it lies, catena would not load it: {}",
                                 links.named(found->second));
    if (!found->second.empty()) return findings.fail("{}", links.named(found->second));
    std::error_code error;
    for (const auto& [path, reason] : states)
        if (!reason.empty() && without.contains(path) && without[path].empty() &&
            !fs::equivalent(path, mine, error))
            findings.fail("with it, catena's own {} is refused: {}",
                          fs::path(path).filename().string(), links.named(reason));
}
void host(const Subject& subject, Findings& findings) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path() / "catena";
    if (access(program.c_str(), X_OK) != 0)
        return findings.skip("no program catena beside this one");
    try {
        ask(program, subject, findings);
    } catch (const std::system_error& e) {  // such as a full /tmp: not a failure of the plugin
        findings.skip("catena cannot be asked: {}", e.what());
    }
}
const Registered r1{
    {"load", "host", "catena loads the plugin, and loads its own plugins beside it", host}};

}  // namespace
}  // namespace catena::check::load_host
