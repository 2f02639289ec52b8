// Defines checks: each has a group, a name and a function that reports what it finds in a plugin. The
// plugin may crash or hang: the process is shared only with checks that examine the same calls.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <source_location>
#include <string>
#include <vector>

namespace catena::check {

// Reproduces a failure: the seed of its random numbers and, if a time limit cut long calls, how
// often each was doubled. As text: "7", "7:5,3".
struct Case {
    std::uint64_t seed = 1;
    std::string doublings = {};
    friend bool operator==(const Case&, const Case&) = default;
};

// The plugin under test, and the options of its checks.
struct Subject {
    std::filesystem::path file;
    std::vector<std::filesystem::path> with;  // plugins to load beside it
    std::uint64_t seed = 1;                   // of all random numbers
    std::string doublings;                    // of long calls, as in Case
    bool reproduce = false;                   // run only the case that failed with this seed
    std::string function;                     // the function to check, if checks run per function
    std::string id;                           // of the plugin; empty if it cannot be loaded

    // If a shared run() crashes or hangs, each check is repeated alone, perhaps with fewer calls.
    std::string only;  // GROUP/NAME of that check; empty: all checks of the run()
    bool large = true;
    bool gradients = true;

    // Returns the seed for generators that take 32 bits.
    unsigned seed32() const { return static_cast<unsigned>(seed ^ seed >> 32); }
};

// The seed of the search for calls that a function accepts. It is the same for every case.
inline constexpr unsigned example_seed = 1;

// A check passes if it calls neither fail() nor skip().
class Findings {
public:
    explicit Findings(std::string check) : check_(std::move(check)) {}

    template <class... Args>
    void fail(fmt::format_string<Args...> text, Args&&... args) {
        add("fail", fmt::format(text, std::forward<Args>(args)...));
    }
    template <class... Args>
    void skip(fmt::format_string<Args...> why, Args&&... args) {
        add("skip", fmt::format(why, std::forward<Args>(args)...));
    }
    // Adds a remark that is not a failure.
    template <class... Args>
    void note(fmt::format_string<Args...> text, Args&&... args) {
        add("note", fmt::format(text, std::forward<Args>(args)...));
    }
    // Reports only the first failure of each kind. Kinds that name a kernel count as the same if
    // they differ only in numbers, dtypes and instruction sets.
    template <class... Args>
    void fail_once(const std::string& kind, fmt::format_string<Args...> text, Args&&... args) {
        if (is_new(kind)) fail(text, std::forward<Args>(args)...);
    }
    // Sets the seed that reproduces later failures, including crashes.
    void seed(std::uint64_t seed);
    // Makes any later output to stdout or stderr a failure of this check.
    void silent();
    // Returns the findings of another check ("group/name") that has the same run().
    Findings of(const std::string& check) const { return Findings(check); }

private:
    bool is_new(const std::string& kind);  // of failure
    void add(const char* kind, const std::string& text) const;

    std::string check_;
    std::set<std::string> told_;  // kinds that fail_once() has reported
};

// Makes the process end with exit(), which runs exit handlers, instead of _exit().
void end_normally();

// Records the current step for the report of a crash or time-out. Cheap.
void now_doing(const std::string& what);
template <class... Args>
void doing(fmt::format_string<Args...> text, Args&&... args) {
    now_doing(fmt::format(text, std::forward<Args>(args)...));
}

enum class Each {
    plugin,    // one process for the whole plugin
    function,  // one for each function that the plugin has or has kernels for
};

struct Check {
    const char* group;
    const char* name;
    const char* doc;
    // Checks with the same run() run together, once; Findings::of() separates their results. An
    // escaping exception or a crash counts as a failure of the first one; then checks that run
    // per function are repeated, each with its name in Subject::only.
    void (*run)(const Subject&, Findings&) = nullptr;
    Each each = Each::plugin;
    bool loads = true;  // false: runs even if the plugin cannot be loaded
};
inline std::string name_of(const Check& check) {
    return std::string(check.group) + "/" + check.name;
}

// Registers a check in its constructor, which checks/NAME.cpp calls before main().
struct Registered {
    explicit Registered(const Check& check,
                        std::source_location where = std::source_location::current());
};
// Returns all checks, sorted by group, file and line.
std::vector<const Check*> all_checks();
// Returns all checks with the same run(), sorted by file and line.
std::vector<const Check*> together_with(const Check& check);

}  // namespace catena::check
