// What rank 0 does for its group: compares the operations that the ranks start, and tells all ranks
// of the first failure. It gets messages and sends messages, and knows nothing of connections.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>

#include "message.hpp"

namespace catena_nccl {

class Hub {
public:
    using Send = std::function<void(int rank, const Message& message)>;
    // make_id: returns a new id of NCCL.
    Hub(int size, Send send, std::function<std::string()> make_id);
    void handle(int rank, const Message& message);
    // The connection to the rank has ended.
    void gone(int rank);

private:
    // The operations of one order that not all its ranks have started, by rank.
    struct Line {
        std::map<int, std::deque<Message>> started;
        std::int64_t agreed = 0;
    };
    Line& line_of(Route route);
    void match(Route route);
    bool fits(const Line& line);
    void split(const std::map<int, Message>& asked);
    void late(const Message& message);
    void fail(const std::function<std::string(int rank)>& text);
    std::string head_of(int rank, const Line* line = nullptr) const;

    const int size_;
    const Send send_;
    const std::function<std::string()> make_id_;
    std::map<Route, Line> lines_;
    std::map<Route, std::string> channels_;
    std::map<int, Message> last_;  // what each rank started last
    std::set<int> left_;
    bool failed_ = false;
};

}  // namespace catena_nccl
