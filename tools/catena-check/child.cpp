// The child's side of a job: runs a check, and sends each finding to the parent at once, so that a
// crash loses none.
#include "job.hpp"
#include "rig.hpp"

#include <catena/data_error.hpp>
#include <catena/testing/report.hpp>
#include <testing/resize.hpp>

#include <fmt/ranges.h>
#include <elf_file.hpp>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace catena::check {
namespace {

using testing::detail::Module;

bool ends_normally = false;

void tell(const std::vector<std::string>& fields) {
    std::string text;
    for (std::string field : fields) {
        std::ranges::replace_if(
            field, [](char c) { return c == field_end || c == message_end; }, '?');
        text += field + field_end;
    }
    text += message_end;
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = write(result_fd, text.data() + at, text.size() - at);
        if (n <= 0 && errno != EINTR) _exit(3);
        at += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

// Reports the current step in a signal handler. Does not allocate: the heap may be corrupted.
extern "C" void last_words(int number, siginfo_t* info, void*) {
    static constexpr std::uintptr_t first_page = 1 << 16;  // no memory is mapped below
    char text[1300] = {'d', 'o', 'i', 'n', 'g', field_end};
    std::size_t n = std::strlen(text);
    const auto add = [&](const char* from) {
        for (const char* c = from; *c != 0 && n < 1280; ++c)
            if (static_cast<unsigned char>(*c) >= 0x20) text[n++] = *c;
    };
    add(testing::doing);
    if (number == SIGSEGV && reinterpret_cast<std::uintptr_t>(info->si_addr) < first_page) {
        add("; it follows a NULL pointer");
        if (const char* const absent = testing::detail::absent) {
            add(", and a host gives backward NULL for ");
            add(absent);
        }
    }
    text[n++] = message_end;
    if (write(result_fd, text, n) < 0) _exit(3);
    std::signal(number, SIG_DFL);
    if (raise(number) != 0) _exit(3);
}

void watch_signals() {
    // A separate stack, for handling a stack overflow.
    static constexpr std::size_t bytes = 1 << 16;
    stack_t stack = {};
    stack.ss_sp = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack.ss_size = bytes;
    if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = last_words;
    action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO;
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGTRAP, SIGSYS})
        sigaction(number, &action, nullptr);
}

// Finds catena's own plugins in the build tree or the installation of this program.
void find_own_plugins() {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    for (const char* const lib : {"lib", CATENA_CHECK_LIBDIR}) {
        const auto folder = program.parent_path().parent_path() / lib / "catena/plugins";
        if (std::filesystem::is_directory(folder, error))
            setenv("CATENA_TESTING_PLUGINS", folder.c_str(), 1);
    }
}

// Returns the table of a plugin. Throws if it is invalid; `hint` ends the message.
const catena_plugin& sound_table(const Module& module, testing::World& world, const char* hint) {
    const catena_plugin& table = module.table(testing::World::host(), world, false);
    if (const std::string text = damage(*module.manifest, table); !text.empty())
        throw std::runtime_error(text + hint);
    return table;
}

// Checks that each plugin in subject.with can be loaded.
void tell_others(const Subject& subject) {
    for (const auto& path : subject.with) try {
            doing("loads {}", path.string());
            testing::World world{std::vector<std::string>()};
            const Module module(path);
            const catena_plugin& table = sound_table(module, world, "");
            const testing::World whole(path.string());  // also calls its init()
            tell({"with", path.string(), field_text(module.manifest->id),
                  std::to_string(table.n_functions)});
        } catch (const std::exception& e) {
            return tell({"with_problem", fmt::format("'{}': {}", path.string(), e.what())});
        }
    tell({"with_all"});
}

void tell_subject(const Subject& subject) {
    testing::World world{std::vector<std::string>()};
    std::set<std::string> functions;
    try {
        doing("loads the plugin");
        const Module module(subject.file);
        tell({"plugin", field_text(module.manifest->id), field_text(module.manifest->version)});
        const catena_plugin& table = sound_table(module, world, ": see schema/table");
        for (const auto* f : std::span(table.functions, table.n_functions))
            functions.insert(f->name);
        for (const auto* k : std::span(table.kernels, table.n_kernels))
            functions.insert(k->function);
        for (const std::string& function : functions) tell({"function", function});
    } catch (const std::exception& e) {
        tell({"problem", e.what()});
    }
}

void run(const std::string& name, const Subject& subject) {
    for (const Check* check : all_checks()) {
        if (name_of(*check) != name) continue;
        Findings findings(name);
        try {
            naming_file("check", subject.file, [&] { check->run(subject, findings); });
        } catch (const std::exception& e) {
            findings.fail("{}", e.what());
            tell({"cut"});
        }
        return;
    }
    throw std::logic_error("no check " + name);
}

}  // namespace

void Findings::add(const char* kind, const std::string& text) const { tell({kind, check_, text}); }
bool Findings::is_new(const std::string& kind) {
    return told_.insert(testing::detail::kind_of(kind)).second;
}
void Findings::seed(std::uint64_t seed) { tell({"seed", std::to_string(seed)}); }
void Findings::silent() {
    std::fflush(nullptr);
    if (write(STDOUT_FILENO, &silence, 1) == 1) tell({"silent", check_});
}

void end_normally() { ends_normally = true; }

void now_doing(const std::string& what) {
    std::snprintf(testing::doing, sizeof testing::doing, "%s", what.c_str());
}

void serve(const std::vector<std::string>& arguments) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string check;
    const Subject subject = subject_of(arguments, check);
    watch_signals();
    find_own_plugins();
    std::istringstream lengths(subject.doublings);
    for (std::string n; std::getline(lengths, n, ',');)
        testing::detail::doublings.given.push_back(std::atoi(n.c_str()));
    testing::detail::doublings.told = [](bool cut) {
        const auto& doublings = testing::detail::doublings;
        static bool ever = !doublings.given.empty();
        ever = ever || cut;
        if (ever) tell({"doublings", fmt::format("{}", fmt::join(doublings.done, ","))});
    };
    if (check.empty()) {
        tell_others(subject);
        tell_subject(subject);
    } else {
        run(check, subject);
    }
    std::fflush(nullptr);
    tell({"done"});
    if (ends_normally) std::exit(0);
    _exit(0);  // runs no exit handlers of the plugin
}

}  // namespace catena::check
