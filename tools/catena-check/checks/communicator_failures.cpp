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
        if (const std::string got =
                problems.need_failure("a call after the failure", own.run(exchange.operation), {});
            got != text)
            problems.add("a call after the failure", "expected the text '{}', got '{}'", text, got);
    }
}

// ---- communicator/mismatch

// What rank 1 starts in place of what the others start, and words of the texts.
struct Mismatch {
    Form usual, odd;
    std::vector<std::string> words;
};

std::vector<Mismatch> mismatches() {
    const Form sum = {.count = 10};
    std::vector<Mismatch> all = {
        {sum, {.kind = CATENA_OP_BCAST, .count = 10}, {"allreduce", "bcast"}},
        {sum, {.kind = CATENA_OP_BARRIER, .count = 10}, {"allreduce", "barrier"}},
        {sum, {.dtype = dtype_of<double>(), .count = 10}, {"float32", "float64"}},
        {sum, {.reduction = CATENA_REDUCE_MAX, .count = 10}, {"sum", "max"}},
        {{.kind = CATENA_OP_REDUCE, .count = 10},
         {.kind = CATENA_OP_REDUCE, .count = 10, .root = 2},
         {"reduce", "rank 0", "rank 2"}}};
    for (const int kind : {CATENA_OP_ALLREDUCE, CATENA_OP_ALLGATHER, CATENA_OP_GATHER,
                           CATENA_OP_SCATTER, CATENA_OP_REDUCE_SCATTER, CATENA_OP_ALLTOALL})
        all.push_back({{.kind = kind, .count = 10}, {.kind = kind, .count = 13}, {"10", "13"}});
    return all;
}

void mismatch(Groups& groups, Problems& problems) {
    for (const Mismatch& m : mismatches()) {
        const std::string what =
            fmt::format("{} on rank 1, {} on the others", m.odd.text(), m.usual.text());
        doing("{}: {}", groups.table.name, what);
        groups.run(4, group_timeout, [&](CommRank& own) {
            run_form(own, {.count = 3}, problems);
            const Form& form = own.rank() == 1 ? m.odd : m.usual;
            const Exchange exchange(form, own.rank(), own.size());
            auto words = m.words;
            words.insert(words.end(), {"rank 1", "expected", "check"});  // check: the label
            const std::string text =
                problems.need_failure(what, own.run(exchange.operation), words);
            need_the_same(own, text, problems);
            own.close();  // before the memory of the operation that failed
        });
    }
    doing("{}: a message of another count", groups.table.name);
    groups.run(2, group_timeout, [&](CommRank& own) {
        float memory[13] = {};
        const bool sends = own.rank() == 1;
        catena_operation o =
            comm_operation(sends ? CATENA_OP_SEND : CATENA_OP_RECV, dtype_of<float>(),
                           sends ? memory : nullptr, sends ? nullptr : memory, sends ? 13 : 10);
        o.peer = sends ? 0 : 1;
        problems.need_failure("a message of another count", own.run(o), {"rank 1", "10", "13"});
        own.close();
    });
}
const Registered r1{{"communicator", "mismatch",
                     "another kind, dtype, count, reduction or root on one rank fails on all; the "
                     "text names the rank, what was expected and what it got",
                     each_communicator<mismatch, true>}};

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
    groups.run(size, group_timeout, [&](CommRank& own) {
        run_form(own, {.kind = CATENA_OP_BCAST, .count = 4}, problems);
        Exchange exchange({.kind = kind, .count = 100}, own.rank(), size);
        exchange.operation.timeout = short_timeout;
        std::string text;
        if (own.rank() < size - 1) {
            const auto start = std::chrono::steady_clock::now();
            text = problems.need_failure(what, own.run(exchange.operation),
                                         {"rank 2", "expected", "check"});
            const std::lock_guard guard(mutex);
            longest = std::max(longest, seconds_since(start));
            failed.count_down();
        } else {
            failed.wait();
            exchange.operation.timeout = 0;
            text = problems.need_failure(what + " in time", own.run(exchange.operation), {});
        }
        need_the_same(own, text, problems);
        own.close();
    });
    return longest;
}

void absent(Groups& groups, Problems& problems) {
    for (const int kind : {CATENA_OP_BARRIER, CATENA_OP_ALLREDUCE}) {
        doing("{}: {} that one rank does not start", groups.table.name, Form{.kind = kind}.text());
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
        catena_operation o = comm_operation(CATENA_OP_RECV, dtype_of<float>(), nullptr, memory, 3);
        o.peer = 1;
        o.timeout = short_timeout;
        problems.need_failure("a message that nobody sends", own.run(o), {"rank 1"});
        failed.count_down();
        own.close();
    });
}
const Registered r2{
    {"communicator", "absent",
     "if a rank does not start an operation, the others fail when the timeout ends; "
     "the text names the rank, and later calls fail at once",
     each_communicator<absent, true>}};

// ---- communicator/abort

void abort(Groups& groups, Problems& problems) {
    const int size = groups.ranks(3), by = groups.ranks(2) - 1;
    if (groups.several()) {
        doing("{}: close() of a rank that others wait for", groups.table.name);
        groups.run(size, group_timeout, [&](CommRank& own) {
            run_form(own, {.kind = CATENA_OP_BARRIER}, problems);
            const Exchange exchange({.count = 100}, own.rank(), size);
            if (own.rank() != by)
                problems.need_failure("allreduce after rank 1 closed the group",
                                      own.run(exchange.operation), {"rank 1"});
            own.close();
        });
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
}
const Registered r3{{"communicator", "abort",
                     "abort() makes all ranks fail, with the reason; close() of a rank that others "
                     "wait for makes them fail",
                     each_communicator<abort>}};

// ---- communicator/silent

void silent(Groups& groups, Problems& problems) {
    problems.findings.silent();
    groups.run(2, group_timeout, [&](CommRank& own) {
        run_form(own, {.count = 100}, problems);
        StartedWork work;
        catena_operation refused = {};
        refused.struct_size = sizeof refused;
        refused.kind = 99;
        if (own.start(refused, work)) problems.add("start()", "expected a refusal, got success");
        const Form form = {.count = own.rank() == 0 ? std::uint64_t{1} : 2};
        const Exchange exchange(form, own.rank(), own.size());
        const CallResult result = own.run(exchange.operation);
        if (own.size() > 1) problems.need_failure("different counts", result, {});
        own.abort("the end");
        own.close();
    });
}
const Registered r4{{"communicator", "silent", "groups, operations and failures print nothing",
                     each_communicator<silent>}};

}  // namespace
}  // namespace catena::check::communicator_failures
