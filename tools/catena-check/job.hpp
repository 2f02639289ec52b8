// One process: a run() of checks, for one function or the whole plugin; and what comes back from it.
#pragma once

#include "check.hpp"

#include <chrono>

namespace catena::check {

struct Finding {
    std::string check;
    std::string text;
    Case of = {};
};

// What the survey, a process before all others, tells of the plugins.
struct Survey {
    std::string problem;       // why the subject cannot be loaded
    std::string with_problem;  // which of the others cannot be, and why
    std::string id;
    std::string version;
    std::vector<std::string> functions;       // that it brings or has kernels for
    std::vector<std::filesystem::path> with;  // those of the others that have functions
    bool knows_with = false;                  // it came to the end of the others
};

struct Outcome {
    std::vector<Finding> failures;
    std::vector<Finding> skipped;
    std::vector<Finding> notes;
    bool finished = false;  // the check came to its end, and the process said so
    bool timed_out = false;
    Survey survey;
    std::string output;  // what the plugin printed
    std::chrono::duration<double> time{0};
};

using Clock = std::chrono::steady_clock;

// In the parent. A crash, a time-out and a silent exit are failures of the check.
Outcome run_check(const Subject& subject, const std::string& check, double timeout);
Survey survey(const Subject& subject, double timeout);

// In the child, with the arguments that the parent gave it. Does not return.
[[noreturn]] void serve(const std::vector<std::string>& arguments);
// A subject with a check, which is empty for the survey, as such arguments.
std::vector<std::string> arguments_of(const Subject& subject, const std::string& check);
Subject subject_of(const std::vector<std::string>& arguments, std::string& check);

// The file to which a child writes messages: fields, each with an end. Text has neither character.
inline constexpr int result_fd = 3;
inline constexpr char field_end = '\x1f', message_end = '\x1e';
// What a process prints first where it has to be silent from then on.
inline constexpr char silence = '\x1e';

}  // namespace catena::check
