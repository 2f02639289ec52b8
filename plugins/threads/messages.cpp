// SEND and RECV. The thread of the receiving rank copies; that of either rank notices timeouts.
#include <algorithm>

#include "team.hpp"

namespace catena_threads {

using namespace catena::plugin;

// Returns whether the other end has started its part of the message.
bool Team::match(std::int32_t rank, const JobPtr& job) {
    auto& others = at(job->o.peer).unmatched;
    const auto other = std::ranges::find_if(others, [&](const JobPtr& j) {
        return j->o.peer == rank && j->o.tag == job->o.tag && j->o.kind != job->o.kind;
    });
    if (other == others.end()) return false;
    const bool sends = job->o.kind == CATENA_OP_SEND;
    Rank& receiver = at(sends ? job->o.peer : rank);
    receiver.to_receive.push_back(sends ? Message{job, *other} : Message{*other, job});
    others.erase(other);
    receiver.mail.notify_all();
    return true;
}

void Team::post(std::int32_t rank, const JobPtr& job) {
    const std::lock_guard guard(mutex_);
    if (failed()) throw Error(CATENA_E_DEVICE, text_);
    Rank& own = at(rank);
    own.last = job;
    if (match(rank, job)) return;
    own.unmatched.push_back(job);
    own.mail.notify_all();  // it has a deadline
}

void Team::receive(std::int32_t rank, std::unique_lock<std::mutex>& lock) {
    Rank& own = at(rank);
    const Message message = own.to_receive.front();
    const Job &send = *message.send, &recv = *message.recv;
    const catena_operation &sent = send.o, &received = recv.o;
    const std::string wanted = "send" + recv.agreement.substr(4);  // after "recv"
    if (send.agreement != wanted)
        return fail_locked(failure(send.info, sent, wanted, send.agreement));
    own.to_receive.pop_front();
    Rank& sender = at(send.info.rank);
    ++own.copies, ++sender.copies;
    lock.unlock();
    copy(recv.recv(), send.send(), recv.bytes(received.count));
    lock.lock();
    --own.copies, --sender.copies;
    changed_.notify_all();
    lock.unlock();
    const bool success =
        delay(own.message_end, std::max(send.started, recv.started), recv.bytes(received.count)) &&
        !failed();  // then copy() stopped
    message.send->finish(success);
    message.recv->finish(success);
    lock.lock();
}

void Team::fail_messages(std::int32_t rank) {
    Rank& own = at(rank);
    for (const JobPtr& job : own.unmatched) job->finish(false);
    for (const Message& m : own.to_receive) m.send->finish(false), m.recv->finish(false);
    own.unmatched.clear();
    own.to_receive.clear();
}

// Fails if the other end of a message is late or has left. Returns the first deadline.
Clock::time_point Team::check_unmatched(std::int32_t rank) {
    Clock::time_point first = Clock::time_point::max();
    for (const JobPtr& job : at(rank).unmatched) {
        const std::int32_t peer = job->o.peer;
        catena_comm_info info = job->info;
        info.rank = peer;
        const char* const what = job->o.kind == CATENA_OP_SEND ? "recv" : "send";
        const std::string wanted = what + (" for " + job->agreement) + " by " + rank_text(rank) +
                                   ", tag " + std::to_string(job->o.tag);
        if (at(peer).closed.load())
            fail_locked(failure(info, job->o, wanted,
                                "close() by " + rank_text(peer) + ", " + last_of(peer)));
        else if (Clock::now() >= job->deadline)
            fail_locked(failure(info, job->o, wanted + " within " + seconds_text(job->o.timeout),
                                "none from " + rank_text(peer) + ", " + last_of(peer)));
        first = std::min(first, job->deadline);
    }
    return first;
}

void Team::serve_messages(std::int32_t rank) {
    Rank& own = at(rank);
    std::unique_lock lock(mutex_);
    while (!own.closed.load()) {
        if (failed()) {
            fail_messages(rank);
            own.mail.wait(lock, [&] { return own.closed.load() || !own.unmatched.empty(); });
        } else if (!own.to_receive.empty()) {
            receive(rank, lock);
        } else if (const Clock::time_point first = check_unmatched(rank); failed()) {
            continue;
        } else if (first == Clock::time_point::max()) {
            own.mail.wait(lock);
        } else {
            own.mail.wait_until(lock, first);
        }
    }
    fail_messages(rank);
}

}  // namespace catena_threads
