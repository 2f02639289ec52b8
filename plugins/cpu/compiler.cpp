// Compiles kernels at run time: the system's C++ compiler builds a shared library, which is then loaded.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <vector>

#include "cpu.hpp"
#include "descriptor.hpp"
#include "dialect.hpp"

namespace catena_cpu {
namespace {

using catena::Descriptor, catena::plugin::Error, catena::plugin::guarded;

constexpr int64_t grain = 16384;  // as in the dialect

// The compiler command for kernels, determined on first use.
struct Tool {
    std::vector<std::string> command;
    std::string identity;
    std::string missing;  // why command is empty
};

std::string contents(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
}

std::string path_of(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

struct Outcome {
    bool started = false;
    int status = -1;     // exit status; 128 + signal if a signal ended it
    std::string output;  // written to stdout and stderr
};

// [any] Runs arguments[0], a path, without a shell, without input and in the environment of this process.
Outcome run_program(const std::vector<std::string>& arguments) {
    Outcome outcome;
    const Descriptor output(memfd_create("output", MFD_CLOEXEC));
    if (!output) return outcome;
    std::vector<char*> words;
    for (const std::string& argument : arguments)
        words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output.get(), 1);
    posix_spawn_file_actions_adddup2(&files, output.get(), 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // Resets the signal mask and ignored signals, so that the program does not inherit them.
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child = 0;
    outcome.started =
        posix_spawn(&child, words[0], &files, &attributes, words.data(), environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (!outcome.started) return outcome;
    int status = 0;
    pid_t waited = 0;
    do waited = waitpid(child, &status, 0);
    while (waited < 0 && errno == EINTR);
    // If this process ignores SIGCHLD, there is no status: the caller then checks the program's output.
    if (waited != child) outcome.status = 0;
    else outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.output = contents(path_of(output.get()));
    return outcome;
}

// Returns the path of a program: name if it contains a '/', else the first match in $PATH; or "".
std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
    const char* path = secure_getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string file = folder + "/" + name;
        // Skips relative folders, such as the current folder.
        if (folder.starts_with('/') && access(file.c_str(), X_OK) == 0) return file;
    }
    return "";
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream words(text);
    return {std::istream_iterator<std::string>(words), {}};
}

// Returns the value of an environment variable, or `otherwise` if it is unset or empty.
std::string setting(const char* name, const char* otherwise) {
    const char* value = secure_getenv(name);
    return value != nullptr && *value != '\0' ? value : otherwise;
}

// Returns which vector functions the system's libmvec has: 0 none, 1 those of its first versions, 2 all.
int vector_mathematics() {
    void* library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 0;
    const bool all = dlsym(library, "_ZGVbN4v_tanhf") != nullptr;
    dlclose(library);
    return all ? 2 : 1;
}

// Returns the argument of -march=. CATENA_CPU_MARCH sets one for binaries that several machines share.
std::string target() { return setting("CATENA_CPU_MARCH", "native"); }

Tool find_tool() {
    Tool tool;
    const std::string wish = setting("CATENA_CXX", "");
    std::string looked_for;
    for (const std::string& name : wish.empty() ? std::vector<std::string>{"c++", "g++", "clang++"}
                                                : std::vector<std::string>{wish}) {
        looked_for += (looked_for.empty() ? "" : ", ") + name;
        std::vector<std::string> command = words_of(name);
        if (command.empty()) continue;
        command[0] = find_program(command[0]);
        if (command[0].empty()) continue;
        std::vector<std::string> ask = command;
        ask.emplace_back("--version");
        const Outcome version = run_program(ask);
        if (!version.started || version.status != 0) continue;
        tool.command = std::move(command);
        tool.identity = version.output.substr(0, version.output.find('\n'));
        break;
    }
    if (tool.command.empty()) {
        tool.missing = "expected a C++ compiler to make a kernel with, found none of " +
                       looked_for +
                       " in PATH; install one (Debian: g++), name it in CATENA_CXX, or ship the "
                       "kernel with the program: CATENA_KERNEL_PATH";
        return tool;
    }
    // No flag permits reassociation or the assumption that there are no NaNs.
    for (const char* flag :
         {"-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w",
          "-fno-diagnostics-color", "-fvisibility=hidden", "-fno-exceptions", "-x", "c++"})
        tool.command.emplace_back(flag);
    const std::string march = target();
    tool.command.push_back("-march=" + march);
    if (isa_level() == 4 && march == "native" && tool.identity.find("clang") == std::string::npos)
        tool.command.emplace_back("-mprefer-vector-width=512");
    tool.command.push_back("-DCATENA_MVEC=" + std::to_string(vector_mathematics()));
    for (const std::string& word : tool.command) tool.identity += " " + word;
    if (march == "native") tool.identity += " " + cpu_signature();
    return tool;
}

// Returns the compiler command. Throws if there is no compiler.
const Tool& tool() {
    static const Tool found = find_tool();
    if (found.command.empty()) throw Error(CATENA_E_UNSUPPORTED, "[cpu compiler] " + found.missing);
    return found;
}

catena_status identity(catena_ctx* ctx, void*, char* text) {
    return guarded(
        ctx, [&] { std::snprintf(text, CATENA_COMPILER_IDENTITY, "%s", tool().identity.c_str()); });
}

// Creates a temporary folder; the destructor deletes it with its contents.
class WorkFolder {
public:
    WorkFolder() {
        const std::string base = setting("TMPDIR", "/tmp");
        path_ = (base[0] == '/' ? base : "/tmp") + "/catena-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr)
            throw Error(CATENA_E_DEVICE,
                        "[cpu compiler] folder for a kernel: expected to make one in $TMPDIR or "
                        "/tmp, got: " +
                            std::generic_category().message(errno));
    }
    ~WorkFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

catena_status compile(catena_ctx* ctx, void*, const catena_compilation* c) {
    return guarded(ctx, [&] {
        std::vector<std::string> command = tool().command;
        const WorkFolder folder;
        const std::string stem = folder.path() + "/" + c->name;
        const std::string source = stem + ".cpp", library = stem + ".so";
        for (const char* const* option = c->options; option != nullptr && *option; ++option)
            command.emplace_back(*option);
        command.insert(command.end(), {"-o", library, source});
        if (!(std::ofstream(source) << c->source).flush())
            throw Error(CATENA_E_DEVICE, "[cpu compiler] " + source + ": cannot be written");
        const Outcome outcome = run_program(command);
        if (!outcome.started)
            throw Error(CATENA_E_DEVICE, "[cpu compiler] " + command[0] + ": cannot be run");
        const std::string binary = outcome.status == 0 ? contents(library) : "";
        if (!binary.empty()) return c->binary(c->user, binary.data(), binary.size());
        if (outcome.output.empty())
            throw Error(CATENA_E_DEVICE,
                        "[cpu compiler] " + command[0] +
                            ": expected a kernel or a message, got neither; it ended with status " +
                            std::to_string(outcome.status));
        c->messages(c->user, outcome.output.c_str());
        throw Error(CATENA_E_INVALID);
    });
}

// Returns a file in memory with the bytes, under a name that /proc/PID/maps and debuggers show.
Descriptor memory_file(const catena_binary& binary) {
    Descriptor file(memfd_create(binary.name, MFD_CLOEXEC));
    const auto bytes = static_cast<ssize_t>(binary.bytes);
    return file && write(file.get(), binary.data, binary.bytes) == bytes ? std::move(file)
                                                                         : Descriptor();
}

// Returns a path of fd that no earlier call returned: dlopen() takes two libraries with the same path for
// one, and descriptor numbers are reused. Redundant "/" and "./" parts of the path encode a counter.
std::string unused_name(int fd) {
    static std::atomic<uint32_t> count = 0;
    std::string name = "/proc/" + std::to_string(getpid()) + "/fd/";
    for (uint32_t rest = count.fetch_add(1) + 1; rest != 0; rest /= 2)
        name += rest % 2 == 0 ? "/" : "./";
    return name + std::to_string(fd);
}

void* open_descriptor(const Descriptor& file) {
    return file ? dlopen(unused_name(file.get()).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
}

// Opens the library through a descriptor, so that the file that was checked is the one that is loaded. Uses
// a file in memory if there is no file, or if its file system does not allow execution.
void* open_library(const catena_binary& binary) {
    void* library = nullptr;
    if (binary.path != nullptr)
        library = open_descriptor(Descriptor(open(binary.path, O_RDONLY | O_CLOEXEC)));
    return library != nullptr ? library : open_descriptor(memory_file(binary));
}

catena_status load(catena_ctx* ctx, void*, const catena_binary* binary,
                   const catena_compiled** kernel) {
    void* library = open_library(*binary);
    void* entry = library != nullptr ? dlsym(library, binary->name) : nullptr;
    if (entry == nullptr) {
        const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe)
        return fail(ctx, CATENA_E_DEVICE, "[%s] the system's loader refuses the kernel: %s",
                    binary->name, reason != nullptr ? reason : "no memory for it");
    }
    *kernel = static_cast<const catena_compiled*>(entry);
    return CATENA_OK;
}

// A catena_compiled pointer is the address of the entry function. The library is never unloaded.
auto entry_of(const catena_compiled* kernel) {
    using Entry = void (*)(const void* args, int64_t begin, int64_t end);
    return reinterpret_cast<Entry>(const_cast<catena_compiled*>(kernel));
}

catena_status launch(catena_ctx* ctx, const catena_launch* launch) {
    const int64_t unit = launch->unit;
    const int64_t items = launch->kind == CATENA_LAUNCH_ELEMENTS
                              ? grain
                              : (grain / std::max<int64_t>(launch->cost, 1) / unit + 1) * unit;
    if (launch->n <= items) {
        entry_of(launch->kernel)(launch->args, 0, launch->n);
        return CATENA_OK;
    }
    const auto run = [](void* user, int64_t begin, int64_t end, int32_t) {
        const auto& share = *static_cast<const catena_launch*>(user);
        entry_of(share.kernel)(share.args, begin, end);
    };
    host().parallel_for(ctx, launch->n, items, run, const_cast<catena_launch*>(launch));
    return CATENA_OK;
}

const char* const* runs(void*) { return isa_levels + 4 - isa_level(); }

const char* makes(void*) {
    static const std::string march = target();
    for (const char* level : isa_levels)
        if (level != nullptr && march == level) return level;
    return nullptr;
}

}  // namespace

const catena_targets targets_table = {
    .struct_size = sizeof(catena_targets),
    .reserved = 0,
    .runs = runs,
    .makes = makes,
};

const catena_compiler compiler_table = {
    .struct_size = sizeof(catena_compiler),
    .reserved = 0,
    .name = "C++",
    .dialect = dialect.data(),
    .reduction_pieces = 64,
    .reduction_least = 8192,
    .identity = identity,
    .compile = compile,
    .load = load,
    .launch = launch,
};

}  // namespace catena_cpu
