// A group of ranks, and its operations.
#pragma once

#include <deque>
#include <optional>
#include <span>

#include "engine.hpp"
#include "task.hpp"

namespace catena_mpi {

using catena::plugin::Error;

// ---- tags. Messages of one operation between two ranks are sent and received in the same order.

constexpr int window = 4096;  // tags of operations; fewer run at a time
constexpr int agreement_tag = 0, data_tag = window, control_tag = 2 * window;
// Data of SEND, by a counter of the sender. The largest tag is below 32767, MPI's minimum.
constexpr int sent_tag = control_tag + 1, sent_tags = 32766 - sent_tag;

// ---- control messages

enum class Notice : std::int32_t {
    failed,    // the group has failed: expected and got
    aborted,   // got is the whole text
    closed,    // the sender closed its group
    question,  // what did you start last?
    answer,    // number, and the text in got
    reported   // the sender has failed too, and its process ends
};
struct Message {
    Notice notice;
    std::int32_t rank;     // the sender
    std::uint64_t number;  // collective operations that the sender has started
    char expected[400], got[600], of[200];
};

// A failure between ranks. The text is formatted when an operation reports it.
struct Cause {
    std::string expected, got;  // if expected is empty, got is the whole text
    std::string of;             // "[allreduce] l1/W", what "it" is in expected
};
class Failure : public std::exception {
public:
    // tell: whether the other ranks must be notified.
    Failure(std::string expected, std::string got, bool tell_others = false)
        : cause{std::move(expected), std::move(got), {}}, tell(tell_others) {}
    const char* what() const noexcept override { return cause.got.c_str(); }
    Cause cause;
    bool tell;
};

// ---- operations

// An operation that was started. All members are under the engine's lock.
class Operation final : public catena::plugin::Work, public catena::plugin::OperationCopy {
public:
    Operation(std::shared_ptr<State> group, const catena_operation& operation,
              std::string_view agreed);
    bool test() override;
    void wait() override;

    // Waits for some of the requests.
    struct Awaited {
        Operation& op;
        std::span<MPI_Request> some;
        bool all;
        bool await_ready() const;
        void await_suspend(std::coroutine_handle<> h) const {
            op.awaited = some;
            op.resume = h;
        }
        void await_resume() const {
            if (all) op.requests.clear();
        }
    };
    Awaited done(std::size_t i) { return {*this, std::span(requests).subspan(i, 1), false}; }
    Awaited all_done() { return {*this, requests, true}; }
    // Resumes the task if what it waits for is done; returns whether it was.
    bool advance();

    // Appends a request, of a message in pieces of at most 1 GiB.
    void send_bytes(const void* data, std::uint64_t n, int to, int tag);
    void receive_bytes(void* data, std::uint64_t n, int from, int tag);

    bool collective() const { return !catena::plugin::is_pair(o.kind); }

    const std::shared_ptr<State> group;
    std::string agreed;        // what must be equal on all ranks
    std::uint64_t number = 0;  // among collective operations, from 1
    int sent = 0;              // the data's tag, for SEND
    bool running = false, finished = false;

    Task task;
    std::vector<MPI_Request> requests;
    std::span<MPI_Request> awaited;
    std::coroutine_handle<> resume;
    std::shared_ptr<void> keeps;  // memory that lives as long as the operation
};

// The whole of an operation: agreement, then data.
Task run(Operation& op);

// ---- groups

// A group's state, which lives on after close() while other ranks may send messages.
class State : public std::enable_shared_from_this<State> {
public:
    // Both communicators become the group's. Begins to listen to control messages.
    State(MPI_Comm comm, MPI_Comm pairs, std::vector<Member> members, double timeout);

    std::shared_ptr<Operation> start(const catena_operation& operation, std::string_view agreed);
    void abort(std::string_view reason);
    void close();
    void halt();  // fails, as MPI is used no more

    // Runs what can run; returns whether something did.
    bool poll(Clock::time_point now);
    bool busy() const { return !operations_.empty(); }
    bool failed() const { return cause_.has_value(); }
    // The text of the failure, formatted by the first operation that reports it.
    const std::string& text_for(const catena_operation& op);
    std::string text_of(const catena_operation& op, const Cause& cause) const;

    // ---- the end
    bool closed() const { return closed_; }
    bool over() const;  // closed by all ranks, without a failure, and nothing is left to do
    void free();
    bool member_ended();  // the process of a rank that has not closed the group
    void report();        // tells the others that this process ends after a failure
    bool reported();      // by all ranks whose processes run

    const MPI_Comm comm, pairs;  // pairs: of SEND and RECV
    const std::vector<Member> members;
    const double timeout;
    catena_comm_info info = {};
    bool whole = false;  // has all processes, from open()

private:
    // The last known state of another rank.
    struct Peer {
        bool closed = false, reported = false, answered = false;
        int ended = 0;  // checks since the end of its process was seen
        std::uint64_t number = 0;
        std::string last;
    };
    struct Outgoing {
        Message message;
        MPI_Request request;
    };

    bool all_others(const auto& is) const {  // is(r) for all ranks but this one
        for (std::size_t r = 0; r < peers_.size(); ++r)
            if (static_cast<int>(r) != info.rank && !is(r)) return false;
        return true;
    }
    void fail(const Cause& cause, bool tell);
    void run_waiting();
    void listen();
    void send(int rank, Notice notice, const Cause& cause);
    void send_all(Notice notice, const Cause& cause = {});
    bool poll_messages();
    void receive(const Message& message);
    void check_members();
    void check_deadlines(Clock::time_point now);
    void conclude();
    void quiesce();

    std::deque<std::shared_ptr<Operation>> operations_;  // not finished, in the order of start()
    std::vector<std::shared_ptr<Operation>> abandoned_;  // by a failure
    std::size_t waiting_ = 0;                            // operations that do not run yet
    std::uint64_t collectives_ = 0;
    int sent_ = 0;
    std::string last_ = "no operation";

    std::optional<Cause> cause_;
    std::string text_;
    bool closed_ = false, reported_ = false;

    std::vector<Peer> peers_;
    Message incoming_ = {};
    MPI_Request listening_ = MPI_REQUEST_NULL;
    std::deque<std::unique_ptr<Outgoing>> outgoing_;
    Clock::time_point next_check_;

    std::shared_ptr<Operation> late_;  // after its timeout, while others are asked for their state
    Clock::time_point answers_until_;
};

// Joins the group of all processes.
std::unique_ptr<catena::plugin::Group> open(const catena_comm_options& options);

}  // namespace catena_mpi
