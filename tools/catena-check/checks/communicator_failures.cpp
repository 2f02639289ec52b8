// Checks how communicators report what happens between ranks.
#include "groups.hpp"

#include <chrono>
#include <latch>

namespace catena::check::communicator_failures {
namespace {

// Seconds: of the operation, and of its group. A failure before half of the latter shows that the
// operation's own timeout counts, also on a busy machine.
constexpr double short_timeout = 0.2, group_timeout = 20, most_time = group_timeout / 2;

using namespace testing;

// After a failure each call fails at once with the same text. Empty: there was none.
void need_the_same(const CommRank& own, const std::string& text, Problems& problems) {
    if (text.empty()) return;
    const Exchange exchange({}, own.rank(), own.size());
    for (int again = 0; again < 2; ++again) {
        StartedWork work;
        CallResult result = own.start(exchange.operation, work);
        if (result) result = work.wait();
        if (const std::string got = problems.need_failure("a call after the failure", result, {});
            got != text)
            problems.add("a call after the failure", "expected the text '{}', got '{}'", text, got);
    }
}

// ---- communicator/mismatch

struct Mismatch {
    const char* what;
    Form usual, odd;
    std::vector<std::string> words;
};

std::vector<Mismatch> mismatches() {
    const Form sum = {.count = 10};
    Form other = sum;
    std::vector<Mismatch> all;
    const auto add = [&](const char* what, Form usual, Form odd, std::vector<std::string> words) {
        all.push_back({what, usual, odd, std::move(words)});
    };
    other.kind = CATENA_OP_BCAST;
    add("kind", sum, other, {"allreduce", "bcast"});
    other = sum;
    other.kind = CATENA_OP_BARRIER;
    add("kind", sum, other, {"allreduce", "barrier"});
    other = sum;
    other.dtype = dtype_of<double>();
    add("dtype", sum, other, {"float32", "float64"});
    other = sum;
    other.count = 13;
    add("count", sum, other, {"10", "13"});
    other = sum;
    other.reduction = CATENA_REDUCE_MAX;
    add("reduction", sum, other, {"sum", "max"});
    Form rooted = {.kind = CATENA_OP_REDUCE, .count = 10};
    other = rooted;
    other.root = 2;
    add("root", rooted, other, {"reduce", "rank 0", "rank 2"});
    for (const int kind : {CATENA_OP_ALLGATHER, CATENA_OP_GATHER, CATENA_OP_SCATTER,
                           CATENA_OP_REDUCE_SCATTER, CATENA_OP_ALLTOALL}) {
        Form form = {.kind = kind, .count = 10};
        other = form;
        other.count = 13;
        add("count", form, other, {"10", "13"});
    }
    return all;
}

void mismatch(const Subject& subject, Findings& findings) {
    each_communicator(subject, findings, true, [&](Groups& groups, Problems& problems) {
        for (const Mismatch& m : mismatches()) {
            doing("{}: {} on rank 1, {} on the others", groups.table.name, m.odd.text(),
                  m.usual.text());
            const std::string what =
                fmt::format("{} on rank 1, {} on the others", m.odd.text(), m.usual.text());
            groups.run(
                4,
                [&](CommRank& own) {
                    run_form(own, {.count = 3}, problems);
                    const Form& form = own.rank() == 1 ? m.odd : m.usual;
                    const Exchange exchange(form, own.rank(), own.size());
                    auto words = m.words;
                    words.push_back("rank 1");
                    words.push_back("expected");
                    words.push_back("check");  // the label
                    const std::string text =
                        problems.need_failure(what, own.run(exchange.operation), words);
                    need_the_same(own, text, problems);
                    own.close();  // before the memory of the operation that failed
                },
                group_timeout);
        }
        doing("{}: a message of another count", groups.table.name);
        groups.run(
            2,
            [&](CommRank& own) {
                float memory[13] = {};
                const bool sends = own.rank() == 1;
                catena_operation o = comm_operation(sends ? CATENA_OP_SEND : CATENA_OP_RECV,
                                                    dtype_of<float>(), sends ? memory : nullptr,
                                                    sends ? nullptr : memory, sends ? 13 : 10);
                o.peer = sends ? 0 : 1;
                problems.need_failure("a message of another count", own.run(o),
                                      {"rank 1", "10", "13"});
                own.close();
            },
            group_timeout);
    });
}
const Registered r1{{"communicator", "mismatch",
                     "another kind, dtype, count, reduction or root on one rank fails on all; the "
                     "text names the rank, what was expected and what it got",
                     mismatch}};

// ---- communicator/absent

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The last rank does not start an operation that the others wait for. Returns their longest wait.
double wait_for_absent(Groups& groups, int kind, Problems& problems) {
    constexpr int size = 3;
    std::latch failed(size - 1);
    std::mutex mutex;
    double longest = 0;
    const std::string what = Form{.kind = kind}.text() + " that rank 2 does not start";
    groups.run(
        size,
        [&](CommRank& own) {
            run_form(own, {.kind = CATENA_OP_BCAST, .count = 4}, problems);
            Exchange exchange({.kind = kind, .count = 100}, own.rank(), size);
            exchange.operation.timeout = short_timeout;
            std::string text;
            if (own.rank() < size - 1) {
                if (kind == CATENA_OP_RECV) exchange.operation.peer = size - 1;
                const auto start = std::chrono::steady_clock::now();
                text = problems.need_failure(what, own.run(exchange.operation),
                                             {"rank 2", "expected", "check"});
                const std::lock_guard guard(mutex);
                longest = std::max(longest, seconds_since(start));
                failed.count_down();
            } else {
                failed.wait();
                exchange.operation.timeout = 0;
                StartedWork work;
                CallResult result = own.start(exchange.operation, work);
                if (result) result = work.wait();
                text = problems.need_failure(what + " in time", result, {});
            }
            need_the_same(own, text, problems);
            own.close();
        },
        group_timeout);
    return longest;
}

void absent(const Subject& subject, Findings& findings) {
    each_communicator(subject, findings, true, [&](Groups& groups, Problems& problems) {
        for (const int kind : {CATENA_OP_BARRIER, CATENA_OP_ALLREDUCE}) {
            doing("{}: {} that one rank does not start", groups.table.name,
                  Form{.kind = kind}.text());
            const double time = wait_for_absent(groups, kind, problems);
            if (time > most_time)
                problems.add("timeout", "expected a failure after {} s, got it after {:.1f} s",
                             short_timeout, time);
        }
        doing("{}: a message that nobody sends", groups.table.name);
        std::latch failed(1);
        groups.run(2, [&](CommRank& own) {
            if (own.rank() != 0) return failed.wait();
            float memory[3] = {};
            catena_operation o =
                comm_operation(CATENA_OP_RECV, dtype_of<float>(), nullptr, memory, 3);
            o.peer = 1;
            o.timeout = short_timeout;
            problems.need_failure("a message that nobody sends", own.run(o), {"rank 1"});
            failed.count_down();
            own.close();
        });
    });
}
const Registered r2{
    {"communicator", "absent",
     "if a rank does not start an operation, the others fail when the timeout ends; "
     "the text names the rank, and later calls fail at once",
     absent}};

// ---- communicator/abort

void abort(const Subject& subject, Findings& findings) {
    each_communicator(subject, findings, false, [&](Groups& groups, Problems& problems) {
        const int size = groups.ranks(3), by = groups.ranks(2) - 1;
        if (groups.several()) {
            doing("{}: close() of a rank that others wait for", groups.table.name);
            groups.run(
                size,
                [&](CommRank& own) {
                    run_form(own, {.kind = CATENA_OP_BARRIER}, problems);
                    const Exchange exchange({.count = 100}, own.rank(), size);
                    if (own.rank() != by)
                        problems.need_failure("allreduce after rank 1 closed the group",
                                              own.run(exchange.operation), {"rank 1"});
                    own.close();
                },
                group_timeout);
        }
        doing("{}: abort()", groups.table.name);
        groups.run(size, [&](CommRank& own) {
            run_form(own, {.kind = CATENA_OP_BARRIER}, problems);
            const std::string words = fmt::format("rank {}: aborted: out of patience", by);
            const Exchange exchange({.count = 100}, own.rank(), size);
            std::string text;
            if (own.rank() == by) {
                own.abort("out of patience");
                own.abort("another reason");
                text = words;
            } else {
                text = problems.need_failure("allreduce when rank 1 aborts",
                                             own.run(exchange.operation), {words});
            }
            need_the_same(own, text, problems);
            own.close();
        });
    });
}
const Registered r3{{"communicator", "abort",
                     "abort() makes all ranks fail, with the reason; close() of a rank that others "
                     "wait for makes them fail",
                     abort}};

// ---- communicator/silent

void silent(const Subject& subject, Findings& findings) {
    each_communicator(subject, findings, false, [&](Groups& groups, Problems& problems) {
        findings.silent();
        groups.run(
            2,
            [&](CommRank& own) {
                run_form(own, {.count = 100}, problems);
                StartedWork work;
                catena_operation refused = {};
                refused.struct_size = sizeof refused;
                refused.kind = 99;
                if (own.start(refused, work))
                    problems.add("start()", "expected a refusal, got success");
                const Form form = {.count = own.rank() == 0 ? std::uint64_t{1} : 2};
                const Exchange exchange(form, own.rank(), own.size());
                const CallResult result = own.run(exchange.operation);
                if (own.size() > 1) problems.need_failure("different counts", result, {});
                own.abort("the end");
                own.close();
            },
            group_timeout);
    });
}
const Registered r4{
    {"communicator", "silent", "groups, operations and failures print nothing", silent}};

}  // namespace
}  // namespace catena::check::communicator_failures
