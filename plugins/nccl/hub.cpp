// Rank 0 compares the operations that the ranks start.
#include "hub.hpp"

#include <algorithm>

namespace catena_nccl {
namespace {

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

std::string failing(const std::string& head, const std::string& expected, const std::string& got) {
    return head + ": expected " + expected + ", got " + got;
}

}  // namespace

Hub::Hub(int size, Send send, std::function<std::string()> make_id)
    : size_(size), send_(std::move(send)), make_id_(std::move(make_id)) {}

Hub::Line& Hub::line_of(Route route) {
    Line& line = lines_[route];
    if (!line.started.empty()) return line;
    if (route != collective) line.started = {{route.first, {}}, {route.second, {}}};
    else
        for (int r = 0; r < size_; ++r) line.started[r];
    return line;
}

std::string Hub::head_of(int rank, const Line* line) const {
    if (line != nullptr) {
        const auto own = line->started.find(rank);
        if (own != line->started.end() && !own->second.empty()) return own->second.front().head;
    }
    const auto last = last_.find(rank);
    return last != last_.end() ? last->second.head : rank_text(rank) + ": [group]";
}

void Hub::fail(const std::function<std::string(int)>& text) {
    if (failed_) return;
    failed_ = true;
    for (int r = 0; r < size_; ++r)
        if (!left_.contains(r)) {
            Message m = {.kind = Kind::failed};
            m.text = text(r);
            send_(r, m);
        }
}

void Hub::handle(int rank, const Message& m) {
    if (m.kind == Kind::left) {
        left_.insert(rank);
        for (const auto& [route, line] : lines_)
            if (line.started.contains(rank)) match(route);
        return;
    }
    if (failed_) return;
    switch (m.kind) {
        case Kind::started:
            last_[rank] = m;
            line_of(m.route).started[rank].push_back(m);
            return match(m.route);
        case Kind::late: return late(m);
        case Kind::failed: return fail([&](int) { return m.text; });
        case Kind::channel:
            if (!channels_.contains(m.route)) {
                Message reply = m;
                reply.text = channels_[m.route] = make_id_();
                for (const int r : {m.route.first, m.route.second}) send_(r, reply);
            }
            return;
        default: return;
    }
}

void Hub::gone(int rank) {
    if (left_.contains(rank)) return;
    left_.insert(rank);
    fail([&](int r) { return failing(head_of(r), rank_text(rank), "the end of its process"); });
}

void Hub::match(Route route) {
    Line& line = line_of(route);
    bool more = false;
    for (;;) {
        const auto waits = [](const auto& entry) { return !entry.second.empty(); };
        if (!std::ranges::any_of(line.started, waits)) break;
        if (std::ranges::all_of(line.started, waits)) {
            if (!fits(line)) return;
            std::map<int, Message> fronts;
            for (auto& [rank, queue] : line.started) {
                fronts[rank] = std::move(queue.front());
                queue.pop_front();
            }
            ++line.agreed;
            more = true;
            if (fronts.begin()->second.text == "split") split(fronts);
            continue;
        }
        for (const auto& [rank, queue] : line.started)
            if (queue.empty() && left_.contains(rank))
                fail([&, gone = rank](int r) {
                    return failing(head_of(r, &line), rank_text(gone), "the end of its membership");
                });
        break;
    }
    if (!more) return;
    Message m = {.kind = Kind::agreed, .route = route, .a = line.agreed};
    for (const auto& entry : line.started)
        if (!left_.contains(entry.first)) send_(entry.first, m);
}

// Whether the first operations of all ranks are the same; else fails.
bool Hub::fits(const Line& line) {
    const auto front = [&](int rank) -> const Message& { return line.started.at(rank).front(); };
    const int first = line.started.begin()->first;
    for (const auto& entry : line.started) {
        const int other = entry.first;
        if (front(other).text == front(first).text) continue;
        fail([&](int r) {
            const auto own = line.started.find(r);
            const int mine = own == line.started.end() ? first : r;
            const int theirs = front(mine).text == front(first).text ? other : first;
            return failing(front(mine).head, "'" + front(mine).text + "'",
                           "'" + front(theirs).text + "' on " + rank_text(theirs));
        });
        return false;
    }
    for (const auto& [from, queue] : line.started)
        for (std::size_t to = 0; to < queue.front().sent.size(); ++to) {
            const auto& received = front(static_cast<int>(to)).received;
            const std::uint64_t sends = queue.front().sent[to];
            const auto source = static_cast<std::size_t>(from);
            if (source >= received.size() || received[source] == sends) continue;
            const std::string pair =
                " elements from " + rank_text(from) + " for " + rank_text(static_cast<int>(to));
            fail([&](int r) {
                return failing(head_of(r, &line), std::to_string(received[source]) + pair,
                               std::to_string(sends));
            });
            return false;
        }
    return true;
}

void Hub::split(const std::map<int, Message>& asked) {
    std::map<std::int64_t, std::vector<std::pair<std::int64_t, int>>> groups;
    for (const auto& [rank, m] : asked)
        if (m.a >= 0) groups[m.a].emplace_back(m.b, rank);
    for (const auto& [rank, m] : asked)
        if (m.a < 0) send_(rank, {.kind = Kind::split});
    for (auto& entry : groups) {
        auto& members = entry.second;
        std::ranges::sort(members);
        for (std::size_t i = 0; i < members.size(); ++i) {
            Message reply = {.kind = Kind::split,
                             .a = static_cast<std::int64_t>(i),
                             .b = static_cast<std::int64_t>(members.size())};
            reply.more = asked.at(members[0].second).more;
            send_(members[i].second, reply);
        }
    }
}

void Hub::late(const Message& m) {
    const Line& line = line_of(m.route);
    std::string missing;
    const Message* last = nullptr;
    for (const auto& [rank, queue] : line.started) {
        if (line.agreed + std::ssize(queue) > m.a) continue;
        if (missing.empty() && last_.contains(rank)) last = &last_[rank];
        missing += (missing.empty() ? "" : ", ") + rank_text(rank);
    }
    const std::string within = " within " + m.text;
    const std::string text =
        missing.empty() ? failing(m.head, "its end" + within,
                                  "an operation that all ranks started and that still runs")
                        : failing(m.head, missing + " to start it" + within,
                                  last == nullptr ? "no operation"
                                                  : "'" + last->text + "' as its last operation");
    fail([&](int) { return text; });
}

}  // namespace catena_nccl
