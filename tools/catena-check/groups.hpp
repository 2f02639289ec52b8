// The subject's communicator, with ranks that are threads of this process, and operations with
// known results.
#pragma once

#include <catena/testing/communicator.hpp>
#include <testing/library.hpp>

#include <mutex>
#include <optional>

#include "check.hpp"

namespace catena::check {

using testing::CallResult;
using testing::CommRank;

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

// ---- operations with known results

struct Form {
    int kind = CATENA_OP_ALLREDUCE;
    catena_dtype dtype = testing::dtype_of<float>();
    int reduction = CATENA_REDUCE_SUM;
    std::uint64_t count = 1;
    bool pieces = false;  // of different sizes, one of them empty
    bool in_place = false;
    int root = 0;
    std::string text() const;
};

// The part of one rank in such an operation.
class Exchange {
public:
    Exchange(const Form& form, int rank, int size);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    catena_operation operation = {};
    // Returns what is wrong with the result, or an empty text.
    std::string wrong() const;

private:
    double number(int rank, std::uint64_t i) const;  // element i of a rank's send
    std::uint64_t piece(int rank) const;
    std::uint64_t piece(int from, int to) const;  // of ALLTOALL
    std::uint64_t offset(int rank) const;
    double reduced(std::uint64_t i) const;
    std::vector<double> results() const;

    const Form form_;
    const int rank_, size_;
    std::vector<std::uint64_t> send_counts_, recv_counts_;
    testing::Array send_, recv_;  // in place, one of them is empty
    testing::Array sent_;         // a copy of send_
    std::vector<double> expected_;
};

// Runs the operation on this rank and reports what is wrong.
void run_form(const CommRank& own, const Form& form, Problems& problems);

}  // namespace catena::check
