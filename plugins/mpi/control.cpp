// Control messages of a group: reports of failures, the watch over the processes
// of this machine, and timeouts.
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "group.hpp"

namespace catena_mpi {

using namespace std::chrono_literals;
using catena::plugin::copy_text, catena::plugin::name_of;

std::vector<bool> ended(const std::vector<Member>& members) {
    std::vector<pollfd> files;
    for (const Member& m : members) files.push_back({m.fd, POLLIN, 0});
    poll(files.data(), files.size(), 0);  // ignores those with fd < 0
    std::vector<bool> result;
    for (std::size_t r = 0; r < members.size(); ++r) {
        const bool unknown = members[r].fd < 0 && members[r].pid > 0;
        result.push_back(unknown ? kill(members[r].pid, 0) != 0 && errno == ESRCH
                                 : files[r].revents != 0);
    }
    return result;
}

std::string end_of(const Member& member) {
    return "the end of its process (pid " + std::to_string(member.pid) + ")";
}

// ---- messages

void State::listen() {
    check_mpi(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, control_tag, comm,
                        &listening_),
              "MPI_Irecv");
}

void State::send(int rank, Notice notice, const Cause& cause) {
    auto& out = *outgoing_.emplace_back(std::make_unique<Outgoing>());
    out.message.notice = notice;
    out.message.rank = info.rank;
    out.message.number = collectives_;
    copy_text(out.message.expected, cause.expected.c_str());
    copy_text(out.message.got, cause.got.c_str());
    copy_text(out.message.of, cause.of.c_str());
    // If it cannot be sent, the other rank finds out by its timeout.
    if (MPI_Isend(&out.message, sizeof(Message), MPI_BYTE, rank, control_tag, comm, &out.request) !=
        MPI_SUCCESS)
        outgoing_.pop_back();
}
void State::send_all(Notice notice, const Cause& cause) {
    const std::vector<bool> gone = ended(members);  // MPI may end a process that sends to these
    for (int r = 0; r < info.size; ++r)
        if (r != info.rank && !gone[static_cast<std::size_t>(r)]) send(r, notice, cause);
}

bool State::poll_messages() {
    bool any = false;
    for (int flag = 1; flag;) {
        if (MPI_Test(&listening_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) return any;
        if (!flag) break;
        any = true;
        const Message message = incoming_;
        listen();
        receive(message);
    }
    std::erase_if(outgoing_, [](const auto& out) {
        int flag = 0;
        return MPI_Test(&out->request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
    });
    return any;
}

void State::receive(const Message& message) {
    Peer& peer = peers_[static_cast<std::size_t>(message.rank)];
    peer.number = message.number;
    switch (message.notice) {
        case Notice::failed:
        case Notice::aborted: fail({message.expected, message.got, message.of}, false); break;
        case Notice::closed: peer.closed = true; break;
        case Notice::question: send(message.rank, Notice::answer, {{}, last_, {}}); break;
        case Notice::answer:
            peer.answered = true;
            peer.last = message.got;
            break;
        case Notice::reported: peer.reported = true; break;
    }
}

// ---- failures

void State::fail(const Cause& cause, bool tell) {
    if (cause_) return;
    cause_ = cause;
    if (tell) send_all(cause.expected.empty() ? Notice::aborted : Notice::failed, cause);
    if (!operations_.empty()) text_for(operations_.front()->o);
    // Their memory is in use until quiesce().
    abandoned_.assign(operations_.begin(), operations_.end());
    operations_.clear();
    late_.reset();
}

const std::string& State::text_for(const catena_operation& op) {
    if (text_.empty()) text_ = text_of(op, *cause_);
    return text_;
}

std::string State::text_of(const catena_operation& op, const Cause& cause) const {
    if (cause.expected.empty()) return cause.got;
    std::string expected = cause.expected;
    const std::size_t it = expected.find(" it ");
    if (!cause.of.empty() && cause.of != name_of(op) && it != std::string::npos)
        expected.replace(it + 1, 2, cause.of);
    return catena::plugin::failure(info, op, expected, cause.got);
}

void State::abort(std::string_view reason) {
    fail({{}, rank_text(info.rank) + ": aborted: " + std::string(reason), {}}, true);
}

// ---- the watch

// Fails if a rank has ended, or has closed the group, before it took part in what runs here. What
// it sent before that may arrive until the next check.
void State::check_members() {
    const std::vector<bool> gone = ended(members);
    for (std::size_t r = 0; r < peers_.size(); ++r) {
        Peer& peer = peers_[r];
        const bool needed = std::ranges::any_of(operations_, [&](const auto& op) {
            return op->collective() ? gone[r] || op->number > peer.number
                                    : op->o.peer == static_cast<int>(r);
        });
        if ((!gone[r] && !peer.closed) || !needed) peer.ended = 0;
        else if (++peer.ended >= 3)
            return fail({rank_text(r) + " to take part",
                         gone[r] ? end_of(members[r]) : "that it has closed the group",
                         {}},
                        true);
    }
}

void State::check_deadlines(Clock::time_point now) {
    if (late_ && late_->finished) late_.reset();
    if (late_) {
        const bool all = all_others([&](std::size_t r) {
            const bool needed = late_->collective() || static_cast<int>(r) == late_->o.peer;
            return peers_[r].answered || !needed;
        });
        if (all || now >= answers_until_) conclude();
        return;
    }
    const auto late =
        std::ranges::find_if(operations_, [&](const auto& op) { return op->deadline <= now; });
    if (late == operations_.end()) return;
    late_ = *late;
    answers_until_ = now + 1s;
    for (Peer& peer : peers_) peer.answered = false;
    send_all(Notice::question);
}

// Fails with the ranks that have not started the operation.
void State::conclude() {
    const Operation& op = *late_;
    std::string who, what;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
        const Peer& peer = peers_[r];
        if (static_cast<int>(r) == info.rank) continue;
        if (op.collective() ? peer.answered && peer.number >= op.number
                            : static_cast<int>(r) != op.o.peer)
            continue;
        const std::string last =
            !peer.answered ? "no answer"
            : peer.last == "no operation"
                ? peer.last
                : peer.last + " as its last operation (number " + std::to_string(peer.number) + ")";
        who += (who.empty() ? "" : " and ") + rank_text(r);
        what += what.empty() ? last : ", and " + last + " from " + rank_text(r);
    }
    char within[48];
    std::snprintf(within, sizeof within, " within %g s", op.o.timeout);
    const bool all = who.empty();
    fail({all ? std::string("all ranks to end it") + within : who + " to start it" + within,
          all ? "it still running" : what, name_of(op.o)},
         true);
}

// ---- the end

void State::close() {
    closed_ = true;
    if (busy()) poll(Clock::now());  // finished operations do not fail
    if (busy() && !cause_)
        fail({rank_text(info.rank) + " to take part", "that it has closed the group", {}}, true);
    if (!cause_) send_all(Notice::closed);
    else quiesce();
}

bool State::over() const {
    return closed_ && !cause_ && !busy() && outgoing_.empty() &&
           all_others([&](std::size_t r) { return peers_[r].closed; });
}

void State::free() {
    MPI_Cancel(&listening_);
    MPI_Wait(&listening_, MPI_STATUS_IGNORE);
    for (MPI_Comm c : {comm, pairs}) MPI_Comm_free(&c);
}

bool State::member_ended() {
    const std::vector<bool> gone = ended(members);  // not of this rank, which is not watched
    return !all_others([&](std::size_t r) { return !gone[r] || peers_[r].closed; });
}

void State::report() {
    if (!std::exchange(reported_, true)) send_all(Notice::reported);
}

bool State::reported() {
    const std::vector<bool> gone = ended(members);
    return outgoing_.empty() &&
           all_others([&](std::size_t r) { return peers_[r].reported || gone[r]; });
}

// Cancels running operations after a failure, so that MPI does not use the callers' memory. If that is
// not possible, as for messages to a process that has ended, MPI is not used any more.
void State::quiesce() {
    if (Engine::get().halted()) return;
    std::vector<MPI_Request*> left;
    for (const auto& op : abandoned_)
        for (MPI_Request& request : op->requests)
            if (request != MPI_REQUEST_NULL) {
                MPI_Cancel(&request);
                left.push_back(&request);
            }
    const auto done = [&] {
        std::erase_if(left, [](MPI_Request* request) {
            int flag = 0;
            return MPI_Test(request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
        });
        return left.empty() && outgoing_.empty();
    };
    Engine& engine = Engine::get();
    if (engine.poll_until(done, 100ms)) return abandoned_.clear();
    report();  // now, as stop() cannot
    engine.poll_until([&] { return reported(); }, 1s);
    if (!left.empty()) engine.halt();
}

void State::halt() {
    fail({{},
          rank_text(info.rank) +
              ": expected MPI, got that its use has ended after the failure of another group",
          {}},
         false);
}

}  // namespace catena_mpi
