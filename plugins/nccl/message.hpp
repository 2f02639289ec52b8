// What the ranks of a group tell each other on the host. The data itself goes through NCCL.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace catena_nccl {

// SEND and RECV have an order of their own for each pair (sender, receiver); the other operations
// of a group have one order, that of `collective`.
using Route = std::pair<int, int>;
constexpr Route collective = {-1, -1};

enum class Kind : std::uint8_t {
    hello,    // to rank 0: a = rank, b = size, text = machine
    welcome,  // a, b = local rank and size, text = NCCL's id
    started,  // to rank 0: route, head, text = agreement; a = 1: this rank sends; sent, received
    agreed,   // route, a = the number of operations that all its ranks have started
    late,     // to rank 0: route, head, a = number of the operation, text = "2 seconds"
    failed,   // text
    channel,  // route; to rank 0: it is needed; from rank 0: text = NCCL's id for it
    split,    // to rank 0: with a = color, b = key, more = address; from rank 0: a, b = rank, size
    left      // close()
};

struct Message {
    Kind kind = Kind::hello;
    Route route = collective;
    std::int64_t a = 0, b = 0;
    std::string head = {};  // "rank 1: [allreduce] l1/W"
    std::string text = {}, more = {};
    // Counts to and from each rank, unless the text has them.
    std::vector<std::uint64_t> sent = {}, received = {};
};

}  // namespace catena_nccl
