// Kernels at run time: the system's C++ compiler makes a library of the source, which is then opened.
#include "compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "child.hpp"
#include "dialect.hpp"
#include "host.hpp"
#include "isa.hpp"

struct catena_compiled {
    void (*entry)(const void* args, int64_t begin, int64_t end);
};

namespace catena_cpu {
namespace {

constexpr int64_t grain = 16384;  // as in the dialect

// What a kernel is compiled with: found on the first use.
struct Tool {
    std::vector<std::string> command;
    std::string identity;
    std::string missing;  // why there is no command
};

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        if (end > at) words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

// The system's library of mathematics on vectors: 0 none, 1 the functions of its first years, 2 all.
int vector_mathematics() {
    void* library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 0;
    const bool all = dlsym(library, "_ZGVbN4v_tanhf") != nullptr;
    dlclose(library);
    return all ? 2 : 1;
}

// What -march= gets: another for binaries that several machines share.
std::string target() {
    const char* wish = secure_getenv("CATENA_CPU_MARCH");
    return wish != nullptr && *wish != '\0' ? wish : "native";
}

Tool find_tool() {
    Tool tool;
    const char* wish = secure_getenv("CATENA_CXX");
    std::string looked_for;
    for (const std::string& name : wish != nullptr && *wish != '\0'
                                       ? std::vector<std::string>{wish}
                                       : std::vector<std::string>{"c++", "g++", "clang++"}) {
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
    // Reassociation is left alone, and NaN is a number like any other.
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

const Tool& tool() {
    static const Tool found = find_tool();
    return found;
}

// Any callback may run out of memory.
template <class Body>
catena_status guarded(catena_ctx* ctx, Body&& body) noexcept {
    try {
        return body();
    } catch (...) {
        return fail(ctx, CATENA_E_NOMEM, "[cpu compiler] out of memory");
    }
}

catena_status identity(catena_ctx* ctx, void*, char* text) {
    return guarded(ctx, [&]() -> catena_status {
        if (tool().command.empty())
            return fail(ctx, CATENA_E_UNSUPPORTED, "[cpu compiler] %s", tool().missing.c_str());
        std::snprintf(text, CATENA_COMPILER_IDENTITY, "%s", tool().identity.c_str());
        return CATENA_OK;
    });
}

// A folder of its own, which is gone with everything in it at the end.
class WorkFolder {
public:
    WorkFolder() {
        const char* wish = secure_getenv("TMPDIR");
        path_ = std::string(wish != nullptr && *wish == '/' ? wish : "/tmp") + "/catena-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr) path_.clear();
    }
    ~WorkFolder() {
        if (path_.empty()) return;
        for (const std::string& file : files_) unlink(file.c_str());
        rmdir(path_.c_str());
    }
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
    bool good() const { return !path_.empty(); }
    const std::string& file(const std::string& name) {
        return files_.emplace_back(path_ + "/" + name);
    }

private:
    std::string path_;
    std::vector<std::string> files_;
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

bool write_file(const std::string& path, const char* text) {
    const File file(std::fopen(path.c_str(), "we"), std::fclose);
    return file != nullptr && std::fputs(text, file.get()) >= 0 && std::fflush(file.get()) == 0;
}

std::string read_file(const std::string& path) {
    const File file(std::fopen(path.c_str(), "re"), std::fclose);
    std::string all;
    char bytes[65536];
    while (file != nullptr) {
        const std::size_t n = std::fread(bytes, 1, sizeof bytes, file.get());
        if (n == 0) break;
        all.append(bytes, n);
    }
    return all;
}

catena_status compile(catena_ctx* ctx, void*, const catena_compilation* c) {
    return guarded(ctx, [&]() -> catena_status {
        if (tool().command.empty())
            return fail(ctx, CATENA_E_UNSUPPORTED, "[cpu compiler] %s", tool().missing.c_str());
        WorkFolder folder;
        if (!folder.good())
            return fail(ctx, CATENA_E_DEVICE,
                        "[cpu compiler] folder for a kernel: expected to make one in $TMPDIR or "
                        "/tmp, got: %s",
                        std::strerror(errno));
        std::vector<std::string> command = tool().command;
        for (const char* const* option = c->options; option != nullptr && *option; ++option)
            command.emplace_back(*option);
        const std::string source = folder.file(std::string(c->name) + ".cpp");
        const std::string library = folder.file(std::string(c->name) + ".so");
        if (!write_file(source, c->source))
            return fail(ctx, CATENA_E_DEVICE, "[cpu compiler] %s: cannot be written",
                        source.c_str());
        for (const std::string& word : {std::string("-o"), library, source})
            command.push_back(word);
        const Outcome outcome = run_program(command);
        const std::string binary = outcome.status == 0 ? read_file(library) : std::string();
        if (!outcome.started)
            return fail(ctx, CATENA_E_DEVICE, "[cpu compiler] %s: cannot be run",
                        command[0].c_str());
        if (binary.empty()) {
            if (outcome.output.empty())
                return fail(
                    ctx, CATENA_E_DEVICE,
                    "[cpu compiler] %s: expected a kernel or a message, got neither; it ended "
                    "with status %d",
                    command[0].c_str(), outcome.status);
            c->messages(c->user, outcome.output.c_str());
            return CATENA_E_INVALID;
        }
        c->binary(c->user, binary.data(), binary.size());
        return CATENA_OK;
    });
}

// Memory with the bytes, by a name that maps and debuggers show.
int memory_file(const catena_binary& binary) {
    const int fd = memfd_create(binary.name, MFD_CLOEXEC);
    const char* at = static_cast<const char*>(binary.data);
    for (uint64_t left = binary.bytes; fd >= 0 && left > 0;) {
        const ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            close(fd);
            return -1;
        }
        at += n;
        left -= static_cast<uint64_t>(n);
    }
    return fd;
}

// The system's loader takes two libraries of one name for one, and a descriptor's number comes again: so
// no name is given twice. The count is in what a path may have for nothing.
std::string unused_name(int fd) {
    static std::atomic<uint32_t> count = 0;
    std::string name = "/proc/" + std::to_string(getpid()) + "/fd/";
    for (uint32_t rest = count.fetch_add(1) + 1; rest != 0; rest /= 2)
        name += rest % 2 == 0 ? "/" : "./";
    return name + std::to_string(fd);
}

void* open_descriptor(int fd) {
    if (fd < 0) return nullptr;
    void* library = dlopen(unused_name(fd).c_str(), RTLD_NOW | RTLD_LOCAL);
    close(fd);
    return library;
}

// By a descriptor: what was checked is what is opened. From memory where there is no file, or where
// nothing may be run from its disk.
void* open_library(const catena_binary& binary) {
    void* library = nullptr;
    if (binary.path != nullptr) library = open_descriptor(open(binary.path, O_RDONLY | O_CLOEXEC));
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
    auto* made = new (std::nothrow) catena_compiled;
    if (made == nullptr) return fail(ctx, CATENA_E_NOMEM, "[%s] out of memory", binary->name);
    std::memcpy(&made->entry, &entry, sizeof entry);
    *kernel = made;
    return CATENA_OK;
}

struct Share {
    const catena_launch& launch;

    static void run(void* user, int64_t begin, int64_t end, int32_t) {
        const catena_launch& launch = static_cast<const Share*>(user)->launch;
        launch.kernel->entry(launch.args, begin, end);
    }
};

catena_status launch(catena_ctx* ctx, const catena_launch* launch) {
    const int64_t unit = launch->unit;
    const int64_t items = launch->kind == CATENA_LAUNCH_ELEMENTS
                              ? grain
                              : (grain / std::max<int64_t>(launch->cost, 1) / unit + 1) * unit;
    if (launch->n <= items) {
        launch->kernel->entry(launch->args, 0, launch->n);
        return CATENA_OK;
    }
    Share share{*launch};
    host->parallel_for(ctx, launch->n, items, Share::run, &share);
    return CATENA_OK;
}

constexpr const char* levels[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", nullptr};

const char* const* runs(void*) { return levels + 4 - isa_level(); }

const char* makes(void*) {
    static const std::string march = target();
    for (const char* level : levels)
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
