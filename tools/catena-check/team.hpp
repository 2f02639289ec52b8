// Runs jobs, some at a time, and again what they cut off.
#pragma once

#include "runner.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace catena::check {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Task {
    Job job;
    Outcome outcome;
    bool done = false;
};

class Team {
public:
    // `subject` with what the survey told. The settings' time for all of it is from `start` on.
    Team(std::vector<Job> jobs, Subject subject, const Settings& settings, Clock::time_point start);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Waits for all that say something of the check: by function. Throws what kept a job from running.
    std::vector<const Task*> of(const Check& check);

private:
    void work();
    Outcome run(const Job& job, const std::string& hung) const;
    Outcome run_alone(const Job& job, Subject subject, bool hung) const;
    void finish(Task& task, Outcome outcome);
    double left() const { return settings_.total - seconds_since(start_); }

    const Subject subject_;
    const Settings& settings_;
    const Clock::time_point start_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;  // grows; those that are done stay as they are
    std::size_t next_ = 0;
    int running_ = 0;
    bool stop_ = false;
    std::map<std::string, std::string> hung_;  // functions, and the check that says so
    std::exception_ptr error_;
    std::vector<std::jthread> members_;
};

}  // namespace catena::check
