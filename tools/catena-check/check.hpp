// What a check is: a name in a group, and a function that tells what it found in a plugin. It runs
// in a process of its own, or of a few that look at the same calls, so it may load the plugin,
// crash and hang.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <source_location>
#include <string>
#include <vector>

namespace catena::check {

// What repeats a failure: the seed of its numbers and, where time has limited long calls, how often
// each was doubled. "7", "7:5,3".
struct Case {
    std::uint64_t seed = 1;
    std::string doublings = {};
    friend bool operator==(const Case&, const Case&) = default;
};

// The plugin under examination, and how.
struct Subject {
    std::filesystem::path file;
    std::vector<std::filesystem::path> with;  // to load beside it
    std::uint64_t seed = 1;                   // of all numbers
    std::string doublings;                    // of long calls, as in a Case
    bool reproduce = false;                   // the seed is that of one failure: run its case alone
    std::string function;                     // the one to examine, in checks for each function
    std::string id;                           // of the plugin; empty where it cannot be loaded

    // If checks that share a run() crash or hang together, each runs alone, without what crashes again.
    std::string only;  // GROUP/NAME; empty: all of them
    bool large = true;
    bool gradients = true;

    // For generators that take 32 bits.
    unsigned seed32() const { return static_cast<unsigned>(seed ^ seed >> 32); }
};

// The seed of the search for calls that a function accepts: the same for every case.
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
    // Worth knowing, and no fault.
    template <class... Args>
    void note(fmt::format_string<Args...> text, Args&&... args) {
        add("note", fmt::format(text, std::forward<Args>(args)...));
    }
    // A failure that several calls may have: of texts of one kind the first is told. Kinds that
    // name a kernel are the same if they differ only in numbers, dtypes and instruction sets.
    void fail_once(const std::string& kind, const std::string& text);
    // From now on, this seed reproduces failures, crashes included.
    void seed(std::uint64_t seed);
    // From now on, it is a failure if anything is printed.
    void silent();
    // Those of another check ("group/name") that has the same run().
    Findings of(const std::string& check) const { return Findings(check); }

private:
    void add(const char* kind, const std::string& text) const;

    std::string check_;
    std::set<std::string> told_;  // kinds, of fail_once()
};

// The process ends as others do, with everything that runs at exit, and not at once.
void end_normally();

// What is going on, for the report of a crash or of a time-out. Cheap.
void now_doing(const std::string& what);
template <class... Args>
void doing(fmt::format_string<Args...> text, Args&&... args) {
    now_doing(fmt::format(text, std::forward<Args>(args)...));
}

enum class Each {
    plugin,    // one process
    function,  // one for each function that the plugin brings or has kernels for
};

struct Check {
    const char* group;
    const char* name;
    const char* doc;
    // Checks with the same run() are run together, once; they are told apart by Findings::of(). A
    // crash is blamed on the first of them, and so is an exception that gets out. Those of a
    // function are run again after it, each with its name in Subject::only.
    void (*run)(const Subject&, Findings&) = nullptr;
    Each each = Each::plugin;
    bool loads = true;  // false: runs even where the plugin cannot be loaded
};
inline std::string name_of(const Check& check) {
    return std::string(check.group) + "/" + check.name;
}

// A static object of it in checks/NAME.cpp takes a check into the program.
struct Registered {
    explicit Registered(const Check& check,
                        std::source_location where = std::source_location::current());
};
// All of them, by group, file and line.
std::vector<const Check*> all_checks();
// Those that run together with it, by file and line.
std::vector<const Check*> together_with(const Check& check);

}  // namespace catena::check
