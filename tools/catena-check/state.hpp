// The state of a process that plugins must not change.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace catena::check {

// A snapshot of that state, from the kernel and the C library, in groups.
class ProcessState {
public:
    static ProcessState now();
    static constexpr const char* groups[] = {"float-mode", "signals", "environment", "files",
                                             "threads"};
    // Returns a line for each difference in a group; empty if there is none.
    std::vector<std::string> changes(const char* group, const ProcessState& later) const;

private:
    using Values = std::map<std::string, std::string>;  // by name
    std::map<std::string, Values> groups_;
};

}  // namespace catena::check
