// Jobs: processes that run checks of one function or of the whole plugin, and their results.
#pragma once

#include "check.hpp"

#include <chrono>

namespace catena::check {

struct Finding {
    std::string check;
    std::string text;
    Case of = {};
};

// The result of the survey: a process that loads the plugins before all checks.
struct Survey {
    std::string problem;       // why the subject cannot be loaded
    std::string with_problem;  // which plugin of --with cannot be loaded, and why
    std::string id;
    std::string version;
    std::vector<std::string> functions;       // that the plugin has or has kernels for
    std::vector<std::filesystem::path> with;  // plugins of --with that have functions
    bool knows_with = false;                  // all plugins of --with were loaded
};

struct Outcome {
    std::vector<Finding> failures;
    std::vector<Finding> skipped;
    std::vector<Finding> notes;
    bool finished = false;  // the child reported the end of the check in time
    bool timed_out = false;
    std::string missed;  // why the process was not started; empty if it was
    Survey survey;
    std::string output;  // what the plugin printed
    std::chrono::duration<double> time{0};
};

using Clock = std::chrono::steady_clock;

// Called by the parent. A crash, a time-out and a call of exit() are failures of the check.
Outcome run_check(const Subject& subject, const std::string& check, double timeout);
Survey survey(const Subject& subject, double timeout);

// Runs a job in the child, with the arguments from the parent.
[[noreturn]] void serve(const std::vector<std::string>& arguments);
// Convert a subject and a check, which is empty for the survey, to such arguments and back.
std::vector<std::string> arguments_of(const Subject& subject, const std::string& check);
Subject subject_of(const std::vector<std::string>& arguments, std::string& check);

// The file for messages of a child: fields with an end each. Texts contain neither end character.
inline constexpr int result_fd = 3;
inline constexpr char field_end = '\x1f', message_end = '\x1e';
// A child prints this character before the part of its run in which output is a failure.
inline constexpr char silence = '\x1e';

}  // namespace catena::check
