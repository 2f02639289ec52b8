// The subject's communicator, with ranks that are threads of this process.
#pragma once

#include <catena/testing/communicator.hpp>
#include <testing/exchange.hpp>
#include <testing/library.hpp>

#include <mutex>
#include <optional>

#include "check.hpp"

namespace catena::check {

using testing::CallResult;
using testing::CommRank;
using testing::Exchange;
using testing::Form;

// Seconds. Long, because a process may be stopped for a while.
inline constexpr double patient = 1000;

// Findings that several threads report. Each kind is reported once.
class Problems {
public:
    explicit Problems(Findings& findings) : findings_(findings) {}
    template <class... Args>
    void add(const std::string& kind, fmt::format_string<Args...> text, Args&&... args) {
        const std::lock_guard guard(mutex_);
        any_ = true;
        findings_.fail_once(kind, kind + ": " + fmt::format(text, std::forward<Args>(args)...));
    }
    // Reports a call that failed. Returns whether it succeeded.
    bool need(const std::string& what, const CallResult& result) {
        if (!result) add(what, "expected success, got status {}: {}", result.status, result.text);
        return static_cast<bool>(result);
    }
    // Reports a call that did not fail between ranks, or whose text lacks one of these words.
    // Returns the text.
    std::string need_failure(const std::string& what, const CallResult& result,
                             const std::vector<std::string>& words);
    bool any() const { return any_; }

private:
    Findings& findings_;
    std::mutex mutex_;
    bool any_ = false;
};

// A communicator of the subject.
class Groups {
public:
    explicit Groups(const catena_communicator& table);
    const catena_communicator& table;
    // Whether a group can have several ranks in this process, or why not.
    bool several() const { return why_one_.empty(); }
    const std::string& why_one() const { return why_one_; }
    std::string without_device() const;
    int ranks(int wanted) const { return several() ? wanted : 1; }
    // Calls body() on a thread for each rank of a new group, or for a group of one rank.
    void run(int wanted, const std::function<void(CommRank&)>& body,
             double timeout = patient) const;

private:
    std::string why_one_;
};

// Calls body() with each communicator of the subject. Skips the check if there is none, or if
// `several` ranks are needed and it has one in a process.
void each_communicator(const Subject& subject, Findings& findings, bool several,
                       const std::function<void(Groups&, Problems&)>& body);

// Runs the operation on this rank and reports what is wrong.
void run_form(const CommRank& own, const Form& form, Problems& problems);

}  // namespace catena::check
