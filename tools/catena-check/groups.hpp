// The subject's communicator, with ranks that are threads of this process.
#pragma once

#include <catena/testing/communicator.hpp>
#include <testing/exchange.hpp>
#include <testing/library.hpp>

#include <mutex>

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
    explicit Problems(Findings& its_findings) : findings(its_findings) {}
    template <class... Args>
    void add(const std::string& kind, fmt::format_string<Args...> text, Args&&... args) {
        const std::lock_guard guard(mutex_);
        findings.fail_once(kind, "{}: {}", kind, fmt::format(text, std::forward<Args>(args)...));
    }
    // Reports a call that failed. Returns whether it succeeded.
    bool need(const std::string& what, const CallResult& result) {
        if (!result) add(what, "expected success, got status {}: {}", result.status, result.text);
        return static_cast<bool>(result);
    }
    // Reports a wrong result.
    void need_right(const std::string& what, const Exchange& exchange) {
        if (const std::string wrong = exchange.wrong(); !wrong.empty()) add(what, "{}", wrong);
    }
    // Reports a call that did not fail between ranks, or whose text lacks one of these words.
    // Returns the text.
    std::string need_failure(const std::string& what, const CallResult& result,
                             const std::vector<std::string>& words);

    Findings& findings;

private:
    std::mutex mutex_;
};

// A communicator of the subject.
class Groups {
public:
    Groups(const catena_communicator& table, unsigned seed);
    const catena_communicator& table;
    const unsigned seed;  // of random numbers
    // Whether a group can have several ranks in this process, or why not.
    bool several() const { return why_one_.empty(); }
    const std::string& why_one() const { return why_one_; }
    std::string without_device() const;
    int ranks(int wanted) const { return several() ? wanted : 1; }
    // Calls body() on a thread for each rank of a new group, or for a group of one rank.
    void run(int wanted, double timeout, const std::function<void(CommRank&)>& body) const;
    void run(int wanted, const std::function<void(CommRank&)>& body) const {
        run(wanted, patient, body);
    }

private:
    std::string why_one_;
};

using CheckOfGroups = void (*)(Groups&, Problems&);
void each_communicator(const Subject& subject, Findings& findings, CheckOfGroups body,
                       bool several);
// Calls body() with each communicator of the subject. Skips the check if there is none, or if
// `several` ranks are needed and it has one in a process.
template <CheckOfGroups body, bool several = false>
void each_communicator(const Subject& subject, Findings& findings) {
    each_communicator(subject, findings, body, several);
}

// Runs the operation on this rank and reports what is wrong.
void run_form(const CommRank& own, const Form& form, Problems& problems);

}  // namespace catena::check
