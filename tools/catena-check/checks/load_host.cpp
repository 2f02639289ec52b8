// Loading by catena itself: it refuses what its core does not like, and this program need not know why.
#include "plugin.hpp"

#include <fmt/format.h>
#include <parse_json.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <system_error>

namespace catena::check {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void fail_system(const std::string& what, int error) {
    throw std::system_error(error, std::generic_category(), what);
}

// Links under names that are loaded in their order; the folder is gone afterwards.
class Links {
public:
    Links() {
        std::string name = (fs::temp_directory_path() / "catena-check-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) fail_system(name, errno);
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
    // A text with the files' own names.
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

// Without what the user has set for catena: folders, pins, a lock.
std::vector<std::string> environment() {
    std::vector<std::string> result = {"CATENA_PLUGIN_LOCK=off"};
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (std::strncmp(*entry, "CATENA_", 7) != 0) result.emplace_back(*entry);
    return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

// What the program says, and how it ended.
std::pair<std::string, int> output_of(const fs::path& program, std::vector<std::string> arguments) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_system("pipe", errno);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    arguments.insert(arguments.begin(), program.string());
    std::vector<std::string> variables = environment();
    pid_t pid = 0;
    const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr,
                                  pointers(arguments).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) fail_system("spawn", error);
    std::string text;
    char piece[4096];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0) text.append(piece, static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) fail_system("waitpid", errno);
    return {text, status};
}

// By path: why a plugin is refused, else "".
std::map<std::string, std::string> loads(const fs::path& program,
                                         const std::vector<std::string>& folders) {
    std::vector<std::string> arguments = {"plugins", "--json"};
    for (const std::string& folder : folders)
        arguments.insert(arguments.end(), {"--plugins", folder});
    const auto [text, status] = output_of(program, arguments);
    // Behind what plugins print.
    const std::size_t begin = text.rfind("{\n  \"");
    const json report = begin == text.npos ? json() : catena::parse_json(text.substr(begin));
    if (WIFSIGNALED(status))  // perhaps at its end, behind the report
        throw std::runtime_error(fmt::format("catena crashed: {}", strsignal(WTERMSIG(status))));
    if (!report.is_object()) {
        throw std::runtime_error(
            fmt::format("catena ended with exit code {} and no report", WEXITSTATUS(status)));
    }
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
    const std::string own = testing::detail::own_folder();
    if (!own.empty()) folders.push_back(own);

    std::map<std::string, std::string> without;  // what catena says of its own alone
    try {
        if (!own.empty()) without = loads(program, {own});
    } catch (const std::exception& e) {
        return findings.skip(fmt::format("without the plugin: {}", e.what()));
    }
    doing("catena plugins");
    const auto states = loads(program, folders);
    const auto found = states.find(mine);
    if (found == states.end())
        return findings.fail("expected that catena tells of it, got nothing");
    // It may lie where others can write to: no fault of the plugin's.
    for (const char* const trust : {"owner of the ", "mode of the "})
        if (found->second.find(trust) != std::string::npos)
            return findings.skip("where it lies, catena would not load it: " +
                                 links.named(found->second));
    if (!found->second.empty()) return findings.fail(links.named(found->second));
    std::error_code error;
    for (const auto& [path, reason] : states)
        if (!reason.empty() && without.contains(path) && without[path].empty() &&
            !fs::equivalent(path, mine, error))
            findings.fail(fmt::format("with it, catena's own {} is refused: {}",
                                      fs::path(path).filename().string(), links.named(reason)));
}
void host(const Subject& subject, Findings& findings) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path() / "catena";
    if (access(program.c_str(), X_OK) != 0)
        return findings.skip("no program catena beside this one");
    try {
        ask(program, subject, findings);
    } catch (const std::system_error& e) {  // no room in /tmp, no process: not the plugin's fault
        findings.skip(fmt::format("catena cannot be asked: {}", e.what()));
    }
}
const Registered r1{
    {"load", "host", "catena itself takes it, and its own plugins beside it", host}};

}  // namespace
}  // namespace catena::check
