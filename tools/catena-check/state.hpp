// What a plugin may not change in the process that loads it.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace catena::check {

struct ProcessState {
    static ProcessState now();
    // A line for each difference; empty if there is none.
    std::vector<std::string> float_mode(const ProcessState& later) const;
    std::vector<std::string> signals(const ProcessState& later) const;
    std::vector<std::string> environment(const ProcessState& later) const;
    std::vector<std::string> files(const ProcessState& later) const;
    std::vector<std::string> threads(const ProcessState& later) const;

private:
    std::uint32_t vector_control_ = 0;  // rounding, flush to zero, traps
    std::uint32_t x87_control_ = 0;
    std::array<struct sigaction, 65> actions_ = {};
    std::set<std::string> variables_;
    std::string locale_, folder_;
    unsigned umask_ = 0;
    void (*terminate_)() = nullptr;
    std::map<int, std::string> files_;
    std::set<int> threads_;
};

// What is written to stdout and stderr between begin() and end().
class Capture {
public:
    void begin();
    std::string end();

private:
    int file_ = -1;
    int saved_[2] = {-1, -1};
};

}  // namespace catena::check
