// The child's side of a job: runs a check, and tells the parent line by line, so that a crash takes
// nothing with it.
#include "job.hpp"
#include "plugin.hpp"

#include <catena/data_error.hpp>
#include <catena/testing/report.hpp>
#include <catena/testing/resize.hpp>

#include <fmt/format.h>
#include <parse_json.hpp>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>

namespace catena::check {
namespace {

using nlohmann::json;

constexpr int result_fd = 3;  // as the parent has it
int to_parent = result_fd;
bool ends_normally = false;

void tell(const json& line) {
    const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = write(to_parent, text.data() + at, text.size() - at);
        if (n <= 0 && errno != EINTR) _exit(3);
        at += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

// Nothing here allocates: the heap may be what is broken.
extern "C" void last_words(int number, siginfo_t* info, void*) {
    static constexpr std::uintptr_t first_page = 1 << 16;  // nothing is ever mapped below
    char text[1300] = "{\"doing\":\"";
    std::size_t n = std::strlen(text);
    const auto add = [&](const char* from) {
        for (const char* c = from; *c != 0 && n < 1280; ++c) {
            if (*c == '"' || *c == '\\') text[n++] = '\\';
            if (static_cast<unsigned char>(*c) >= 0x20) text[n++] = *c;
        }
    };
    add(testing::doing);
    if (number == SIGSEGV && reinterpret_cast<std::uintptr_t>(info->si_addr) < first_page) {
        add("; it follows a NULL pointer");
        if (testing::absent[0] != 0) add(", and a host gives backward NULL for ");
        add(testing::absent);
    }
    std::memcpy(text + n, "\"}\n", 3);
    if (write(to_parent, text, n + 3) < 0) _exit(3);
    std::signal(number, SIG_DFL);
    if (raise(number) != 0) _exit(3);
}

void watch_signals() {
    // Of its own, for a stack that overflows.
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

// Catena's own, of the build tree or the installation that this program is in.
void find_own_plugins() {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    for (const char* const lib : {"lib", CATENA_CHECK_LIBDIR}) {
        const auto folder = program.parent_path().parent_path() / lib / "catena/plugins";
        if (std::filesystem::is_directory(folder, error))
            setenv("CATENA_TESTING_PLUGINS", folder.c_str(), 1);
    }
}

// Of those that the subject is tested with: each can be loaded.
json describe_others(const Subject& subject) {
    json others = json::array();
    for (const auto& path : subject.with) try {
            doing(fmt::format("loads {}", path.string()));
            testing::World world{std::vector<std::string>()};
            const Module module(path);
            const catena_plugin& table = module.table(world);
            if (const std::string text = damage(*module.manifest, table); !text.empty())
                throw std::runtime_error(text);
            const testing::World whole(path.string());  // its init(), too
            const char* const id = module.manifest->id;
            others.push_back({{"path", path.string()},
                              {"id", std::string(id, strnlen(id, sizeof module.manifest->id))},
                              {"functions", table.n_functions}});
        } catch (const std::exception& e) {
            return {{"with_problem", fmt::format("'{}': {}", path.string(), e.what())}};
        }
    return {{"with", others}};
}

json describe(const Subject& subject) {
    json answer;
    testing::World world{std::vector<std::string>()};
    std::set<std::string> functions;
    try {
        doing("loads the plugin");
        const Module module(subject.file);
        const std::size_t n = sizeof module.manifest->id;
        answer["id"] = std::string(module.manifest->id, strnlen(module.manifest->id, n));
        answer["version"] =
            std::string(module.manifest->version,
                        strnlen(module.manifest->version, sizeof module.manifest->version));
        const catena_plugin& table = module.table(world);
        if (const std::string text = damage(*module.manifest, table); !text.empty())
            throw std::runtime_error(text + ": see schema/table");
        for (std::uint32_t i = 0; i < table.n_functions; ++i)
            functions.insert(table.functions[i]->name);
        for (std::uint32_t i = 0; i < table.n_kernels; ++i)
            functions.insert(table.kernels[i]->function);
        answer["functions"] = functions;
    } catch (const std::exception& e) {
        answer["problem"] = e.what();
    }
    return answer;
}

void run(const json& spec, const Subject& subject) {
    const std::string name = spec["check"];
    for (const Check* check : all_checks()) {
        if (name_of(*check) != name) continue;
        Findings findings(name);
        try {
            naming_file("check", subject.file, [&] { check->run(subject, findings); });
        } catch (const std::exception& e) {
            findings.fail(e.what());
            tell({{"cut", true}});
        }
        return;
    }
    throw std::logic_error("no check " + name);
}

}  // namespace

void Findings::fail(const std::string& text) { tell({{"check", check_}, {"fail", text}}); }
void Findings::fail_once(const std::string& kind, const std::string& text) {
    using namespace testing::detail;
    if (told_.insert(kind_of(kind, variant_in(kind))).second) fail(text);
}
void Findings::skip(const std::string& why) { tell({{"check", check_}, {"skip", why}}); }
void Findings::note(const std::string& text) { tell({{"check", check_}, {"note", text}}); }
void Findings::seed(std::uint64_t seed) { tell({{"seed", seed}}); }
void Findings::silent() {
    std::fflush(nullptr);
    if (write(STDOUT_FILENO, &silence, 1) == 1) tell({{"check", check_}, {"silent", true}});
}

void end_normally() { ends_normally = true; }

void doing(const std::string& what) {
    std::snprintf(testing::doing, sizeof testing::doing, "%s", what.c_str());
}

void serve(const std::string& text) {
    const json spec = catena::parse_json(text);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != spec["parent"].get<pid_t>()) _exit(3);
    watch_signals();
    find_own_plugins();
    Subject subject;
    subject.file = spec["file"].get<std::string>();
    for (const auto& path : spec["with"]) subject.with.emplace_back(path.get<std::string>());
    subject.seed = spec["seed"];
    subject.reproduce = spec["reproduce"];
    subject.id = spec["id"];
    subject.only = spec["only"];
    subject.large = spec["large"];
    subject.gradients = spec["gradients"];
    testing::detail::doublings.given = spec["doublings"].get<std::vector<int>>();
    testing::detail::doublings.told = [](bool cut) {
        const auto& doublings = testing::detail::doublings;
        static bool ever = !doublings.given.empty();
        ever = ever || cut;
        if (ever) tell({{"doublings", doublings.done}});
    };
    subject.function = spec.value("function", "");
    if (spec.contains("check")) {
        run(spec, subject);
    } else {
        tell({{"answer", describe_others(subject)}});
        tell({{"answer", describe(subject)}});
    }
    std::fflush(nullptr);
    tell({{"done", true}});
    if (ends_normally) std::exit(0);
    _exit(0);  // nothing that a plugin does at the end belongs to this check
}

}  // namespace catena::check
