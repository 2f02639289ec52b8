// The algorithms. Each operation begins with an agreement of the ranks that they have started the
// same one; arrays of a few KB are reduced and broadcast with it. All orders of additions depend
// only on the number of ranks and of elements, and each sum is made by one rank or, in the
// agreement, from the same two parts by both.
#include <algorithm>
#include <bit>
#include <cstring>

#include "group.hpp"

namespace catena_mpi {
namespace {

using catena::plugin::Pieces, catena::plugin::reduce_into, catena::plugin::reduces;

constexpr std::uint64_t carried_bytes = 8 << 10;    // at most, with an agreement
constexpr std::uint64_t segment_bytes = 256 << 10;  // of large arrays
constexpr std::size_t depth = 4;                    // segments in flight in each direction

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

void copy(const Operation& op, void* to, const void* from, std::uint64_t elements) {
    if (to != from && elements > 0) std::memmove(to, from, op.bytes(elements));
}
std::unique_ptr<std::byte[]> buffer(std::uint64_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes);
}
void divide_mean(const Operation& op, void* data, std::uint64_t elements) {
    if (op.o.reduction == CATENA_REDUCE_MEAN)
        catena::plugin::divide(data, elements, op.o.dtype, op.group->info.size);
}

// ---- agreement

// The votes of some ranks with neighbouring numbers, and what they carry.
struct Votes {
    std::uint64_t low, high;  // the smallest and the largest hash
    std::uint64_t bytes;      // of the data
    alignas(16) std::byte data[carried_bytes];
};
constexpr std::uint64_t votes_header = offsetof(Votes, data);

struct Ballot {
    std::unique_ptr<Votes> mine{new Votes}, theirs{new Votes};
    bool same() const { return mine->low == mine->high; }
};

bool carries(const Operation& op) {
    const bool kind = op.o.kind == CATENA_OP_ALLREDUCE || op.o.kind == CATENA_OP_REDUCE ||
                      op.o.kind == CATENA_OP_BCAST;
    return kind && op.o.count <= carried_bytes / op.item;
}

// Combines both votes to mine. theirs_first: the order of the ranks.
void count(const Operation& op, Ballot& ballot, std::uint64_t hash, bool theirs_first) {
    Votes &mine = *ballot.mine, &theirs = *ballot.theirs;
    mine.low = std::min(mine.low, theirs.low);
    mine.high = std::max(mine.high, theirs.high);
    if (mine.low != hash || mine.high != hash || theirs.bytes == 0) return;
    if (mine.bytes == 0) {  // the root's, of a broadcast
        std::memcpy(mine.data, theirs.data, theirs.bytes);
        mine.bytes = theirs.bytes;
    } else if (reduces(op.o.kind)) {
        if (theirs_first) {
            reduce_into(theirs.data, mine.data, op.o.count, op.o.dtype, op.o.reduction);
            theirs.low = mine.low;
            theirs.high = mine.high;
            std::swap(ballot.mine, ballot.theirs);
        } else {
            reduce_into(mine.data, theirs.data, op.o.count, op.o.dtype, op.o.reduction);
        }
    }
}

void send_votes(Operation& op, const Ballot& ballot, int to, int tag) {
    op.send_bytes(ballot.mine.get(), votes_header + ballot.mine->bytes, to, tag);
}
void receive_votes(Operation& op, const Ballot& ballot, int from, int tag) {
    op.receive_bytes(ballot.theirs.get(), sizeof(Votes), from, tag);
}

// By recursive doubling. The first ranks are paired until a power of two is left.
Task agree(Operation& op, std::uint64_t hash, Ballot& ballot) {
    const int rank = op.group->info.rank, size = op.group->info.size;
    const int tag = agreement_tag + static_cast<int>(op.number % window);
    ballot.mine->low = ballot.mine->high = hash;
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
    const int extra = size - power;
    const bool paired = rank < 2 * extra, leaves = paired && rank % 2 == 0;
    if (leaves) {
        send_votes(op, ballot, rank + 1, tag);
        receive_votes(op, ballot, rank + 1, tag);
        co_await op.all_done();
        std::swap(ballot.mine, ballot.theirs);
        co_return;
    }
    if (paired) {
        receive_votes(op, ballot, rank - 1, tag);
        co_await op.all_done();
        count(op, ballot, hash, true);
    }
    const int place = paired ? rank / 2 : rank - extra;
    for (int bit = 1; bit < power; bit *= 2) {
        const int other = place ^ bit;
        const int peer = other < extra ? 2 * other + 1 : other + extra;
        receive_votes(op, ballot, peer, tag);
        send_votes(op, ballot, peer, tag);
        co_await op.all_done();
        count(op, ballot, hash, other < place);
    }
    if (paired) {
        send_votes(op, ballot, rank - 1, tag);
        co_await op.all_done();
    }
}

// The operation that a rank has started, or a mismatch that it has found.
struct Opinion {
    char expected[400], got[400];
};

// Exchanges the operations of all ranks after a mismatch. Throws Failure.
Task disagree(Operation& op, const std::string& expected, const std::string& got) {
    const int rank = op.group->info.rank, size = op.group->info.size;
    const int tag = agreement_tag + static_cast<int>(op.number % window);
    std::vector<Opinion> all(index(size));
    expected.copy(all[index(rank)].expected, sizeof(Opinion::expected) - 1);
    got.copy(all[index(rank)].got, sizeof(Opinion::got) - 1);
    for (int r = 0; r < size; ++r) {
        if (r == rank) continue;
        op.receive_bytes(&all[index(r)], sizeof(Opinion), r, tag);
        op.send_bytes(&all[index(rank)], sizeof(Opinion), r, tag);
    }
    co_await op.all_done();
    for (const Opinion& opinion : all)
        if (opinion.got[0] != '\0') throw Failure(opinion.expected, opinion.got);
    // Names the first rank that differs from most.
    std::vector<std::string> texts;
    for (const Opinion& opinion : all) texts.emplace_back(opinion.expected);
    const std::string& usual = texts[catena::plugin::usual_rank(texts)];
    for (std::size_t r = 0; r < texts.size(); ++r)
        if (texts[r] != usual) throw Failure(usual, texts[r] + " from rank " + std::to_string(r));
    throw Failure(usual, "another operation");  // the texts were cut
}

// Compares what each rank sends with what the other receives. Throws Failure on all ranks.
Task agree_on_counts(Operation& op) {
    const int rank = op.group->info.rank, size = op.group->info.size;
    const int tag = data_tag + static_cast<int>(op.number % window);
    const bool all = op.o.kind == CATENA_OP_ALLTOALL, root = op.o.peer == rank;
    const bool gather = op.o.kind == CATENA_OP_GATHER;
    // Ranks with pieces on one side have a count for each rank, the others one for the root.
    const auto own = [&](const Pieces& pieces, int r) {
        return pieces.counts.empty() ? op.o.count : pieces.counts[index(r)];
    };
    std::vector<std::uint64_t> ours(index(size)), theirs(index(size));
    for (int r = 0; r < size; ++r) {
        if (r == rank || !(all || root || r == op.o.peer)) continue;
        if (all || gather != root) {  // data goes to r
            ours[index(r)] = own(op.sends, r);
            op.send_bytes(&ours[index(r)], sizeof(std::uint64_t), r, tag);
        }
        if (all || gather == root)
            op.receive_bytes(&theirs[index(r)], sizeof(std::uint64_t), r, tag);
    }
    co_await op.all_done();
    std::string expected, got;
    for (int r = 0; r < size && got.empty(); ++r) {
        if (r == rank || !(all || (gather ? root : r == op.o.peer))) continue;
        if (own(op.recvs, r) == theirs[index(r)]) continue;
        expected = std::to_string(own(op.recvs, r)) + " elements from rank " + std::to_string(r) +
                   " for rank " + std::to_string(rank);
        got = std::to_string(theirs[index(r)]);
    }
    Ballot ballot;
    ballot.mine->bytes = 0;
    // A different hash for each rank with a mismatch, because all ranks may have one.
    co_await agree(op, got.empty() ? 0 : index(rank) + 1, ballot);
    if (!ballot.same()) co_await disagree(op, expected, got);
}

// ---- data

struct Segment {
    std::uint64_t begin, elements;
    int step;
};

void append_segments(std::vector<Segment>& segments, const Operation& op, std::uint64_t begin,
                     std::uint64_t elements, int step) {
    const std::uint64_t most = segment_bytes / op.item;
    for (std::uint64_t i = 0; i < elements; i += most)
        segments.push_back({begin + i, std::min(most, elements - i), step});
}

// Begins a request of one segment, or of any small message.
void send_to(Operation& op, std::size_t slot, const void* data, std::uint64_t elements, int to) {
    const int tag = data_tag + static_cast<int>(op.number % window);
    check_mpi(MPI_Isend(data, static_cast<int>(op.bytes(elements)), MPI_BYTE, to, tag,
                        op.group->comm, &op.requests[slot]),
              "MPI_Isend");
}
void receive_from(Operation& op, std::size_t slot, void* data, std::uint64_t elements, int from) {
    const int tag = data_tag + static_cast<int>(op.number % window);
    check_mpi(MPI_Irecv(data, static_cast<int>(op.bytes(elements)), MPI_BYTE, from, tag,
                        op.group->comm, &op.requests[slot]),
              "MPI_Irecv");
}

// Steps first .. last of the ring: N - 1 that reduce, after which rank r has the sum of piece r,
// then N - 1 that pass the pieces on. A segment is sent as soon as it is received and reduced.
// local: what this rank adds; work: receives all pieces. They may be equal.
Task ring(Operation& op, const Pieces& pieces, const std::byte* local, std::byte* work, int first,
          int last) {
    const int rank = op.group->info.rank, size = op.group->info.size;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const auto piece = [&](int back) { return index(((rank - back) % size + size) % size); };
    std::vector<Segment> sends, receives;
    append_segments(sends, op, pieces.offsets[piece(first + 1)], pieces.counts[piece(first + 1)],
                    first);
    const std::size_t head = sends.size();
    for (int step = first; step < last; ++step)
        append_segments(receives, op, pieces.offsets[piece(step + 2)],
                        pieces.counts[piece(step + 2)], step);
    for (const Segment& s : receives)
        if (s.step + 1 < last) sends.push_back({s.begin, s.elements, s.step + 1});

    const bool in_place = local == work;
    const auto adds = [&](const Segment& s) { return s.step < size - 1; };
    const auto scratch = buffer(in_place && first == 0 ? depth * segment_bytes : 0);
    const auto place = [&](std::size_t i) {
        const Segment& s = receives[i];
        return in_place && adds(s) ? scratch.get() + i % depth * segment_bytes
                                   : work + op.bytes(s.begin);
    };
    op.requests.assign(2 * depth, MPI_REQUEST_NULL);
    std::size_t posted = 0, sent = 0, received = 0;
    while (received < receives.size() || sent < sends.size()) {
        for (; posted < receives.size() && posted < received + depth; ++posted)
            receive_from(op, posted % depth, place(posted), receives[posted].elements, left);
        // Blocks on a sent segment only if the ring cannot be full of them.
        const std::size_t most = received == receives.size() ? sends.size() : received + depth;
        while (sent < sends.size() && sent < most && sent < head + received) {
            const std::size_t slot = depth + sent % depth;
            co_await op.done(slot);
            const Segment& s = sends[sent];
            send_to(op, slot, (s.step == 0 ? local : work) + op.bytes(s.begin), s.elements, right);
            ++sent;
        }
        if (received == receives.size()) continue;
        co_await op.done(received % depth);
        const Segment& s = receives[received];
        if (adds(s)) {
            std::byte* const sum = work + op.bytes(s.begin);
            reduce_into(sum, in_place ? place(received) : local + op.bytes(s.begin), s.elements,
                        op.o.dtype, op.o.reduction);
            if (s.step == size - 2) divide_mean(op, sum, s.elements);
        }
        ++received;
    }
    co_await op.all_done();
}

// Passes an array along the ranks, in segments: from the root, or to it with the sum of all.
Task chain(Operation& op) {
    const int rank = op.group->info.rank, size = op.group->info.size;
    const bool adds = reduces(op.o.kind), root = op.o.peer == rank;
    const int position = (rank - op.o.peer - (adds ? 1 : 0) + 2 * size) % size;
    const bool gets = position > 0, gives = position < size - 1;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const bool in_place = op.o.send == op.o.recv;
    const bool direct = !adds || (root && !in_place);  // receives where the result is
    std::vector<Segment> segments;
    append_segments(segments, op, 0, op.o.count, 0);
    const auto scratch = buffer(gets && !direct ? depth * segment_bytes : 0);
    const auto place = [&](std::size_t i) {
        return direct ? op.recv() + op.bytes(segments[i].begin)
                      : scratch.get() + i % depth * segment_bytes;
    };
    op.requests.assign(2 * depth, MPI_REQUEST_NULL);
    std::size_t posted = 0;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Segment& s = segments[i];
        const std::byte* data = gets ? place(i) : op.send() + op.bytes(s.begin);
        for (; gets && posted < segments.size() && posted < i + depth; ++posted) {
            co_await op.done(depth + posted % depth);  // the segment before it was sent
            receive_from(op, posted % depth, place(posted), segments[posted].elements, left);
        }
        if (gets) co_await op.done(i % depth);
        if (gets && adds) {
            const std::byte* const local = op.send() + op.bytes(s.begin);
            reduce_into(place(i), local, s.elements, op.o.dtype, op.o.reduction);
            if (root) {
                divide_mean(op, place(i), s.elements);
                copy(op, op.recv() + op.bytes(s.begin), place(i), s.elements);
            }
        }
        if (gives) {
            co_await op.done(depth + i % depth);
            send_to(op, depth + i % depth, data, s.elements, right);
        }
    }
    co_await op.all_done();
}

Task allreduce(Operation& op) {
    const auto size = static_cast<std::uint64_t>(op.group->info.size);
    Pieces pieces;
    pieces.offsets.push_back(0);
    for (std::uint64_t r = 0; r < size; ++r) {
        pieces.counts.push_back(op.o.count / size + (r < op.o.count % size ? 1 : 0));
        pieces.offsets.push_back(pieces.total() + pieces.counts.back());
    }
    co_await ring(op, pieces, op.send(), op.recv(), 0, 2 * op.group->info.size - 2);
}

Task reduce_scatter(Operation& op) {
    const auto sums = buffer(op.bytes(op.sends.total()));
    co_await ring(op, op.sends, op.send(), sums.get(), 0, op.group->info.size - 1);
    const auto own = op.sends.offsets[index(op.group->info.rank)];
    copy(op, op.recv(), sums.get() + op.bytes(own), op.o.count);
}

Task allgather(Operation& op) {
    const int size = op.group->info.size;
    const auto own = op.recvs.offsets[index(op.group->info.rank)];
    copy(op, op.recv() + op.bytes(own), op.o.send, op.o.count);
    co_await ring(op, op.recvs, op.recv(), op.recv(), size - 1, 2 * size - 2);
}

// Gather, scatter and alltoall: each piece goes directly to its rank.
Task exchange(Operation& op) {
    const int rank = op.group->info.rank, size = op.group->info.size;
    const int tag = data_tag + static_cast<int>(op.number % window);
    const std::byte* send = op.send();
    std::unique_ptr<std::byte[]> before;
    if (op.o.kind == CATENA_OP_ALLTOALL && op.o.send == op.o.recv) {
        before = buffer(op.bytes(op.sends.total()));
        copy(op, before.get(), send, op.sends.total());
        send = before.get();
    }
    // The own piece is moved before the others arrive (gather), or after they were sent (scatter).
    const bool sends = !op.sends.counts.empty(), receives = !op.recvs.counts.empty();
    const auto move_own = [&] {
        copy(op, op.recv() + (receives ? op.bytes(op.recvs.offsets[index(rank)]) : 0),
             send + (sends ? op.bytes(op.sends.offsets[index(rank)]) : 0),
             receives ? op.recvs.counts[index(rank)] : op.o.count);
    };
    if (receives) move_own();
    for (int i = 1; i < size; ++i) {
        const int from = (rank + size - i) % size;
        if (receives)
            op.receive_bytes(op.recv() + op.bytes(op.recvs.offsets[index(from)]),
                             op.bytes(op.recvs.counts[index(from)]), from, tag);
        else if (from == op.o.peer && op.o.kind == CATENA_OP_SCATTER)
            op.receive_bytes(op.recv(), op.bytes(op.o.count), from, tag);
    }
    for (int i = 1; i < size; ++i) {
        const int to = (rank + i) % size;
        if (sends)
            op.send_bytes(send + op.bytes(op.sends.offsets[index(to)]),
                          op.bytes(op.sends.counts[index(to)]), to, tag);
        else if (to == op.o.peer && op.o.kind == CATENA_OP_GATHER)
            op.send_bytes(send, op.bytes(op.o.count), to, tag);
    }
    co_await op.all_done();
    if (sends && !receives) move_own();
}

// ---- send and recv

// Sent before the data.
struct Envelope {
    std::int32_t tag;  // of the data
    char text[252];    // the operation without its name
};

Task send(Operation& op) {
    Envelope envelope = {};
    envelope.tag = op.sent;
    op.agreed.copy(envelope.text, sizeof envelope.text - 1);
    op.requests.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Isend(&envelope, sizeof envelope, MPI_BYTE, op.o.peer, op.o.tag, op.group->pairs,
                        &op.requests.back()),
              "MPI_Isend");
    op.send_bytes(op.o.send, op.bytes(op.o.count), op.o.peer, op.sent);
    co_await op.all_done();
}

Task receive(Operation& op) {
    Envelope envelope = {};
    op.requests.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(&envelope, sizeof envelope, MPI_BYTE, op.o.peer, op.o.tag, op.group->pairs,
                        &op.requests.back()),
              "MPI_Irecv");
    co_await op.all_done();
    if (op.agreed != envelope.text) {  // not known to the other ranks
        const std::string from = " from rank " + std::to_string(op.o.peer);
        throw Failure("send" + op.agreed, "send" + std::string(envelope.text) + from, true);
    }
    op.receive_bytes(op.o.recv, op.bytes(op.o.count), op.o.peer, envelope.tag);
    co_await op.all_done();
}

// The operation of a group with one rank.
void run_alone(const Operation& op) {
    if (op.o.kind != CATENA_OP_BCAST && op.o.kind != CATENA_OP_BARRIER)
        copy(op, op.o.recv, op.o.send,
             op.o.kind == CATENA_OP_ALLTOALL ? op.recvs.total() : op.o.count);
}

}  // namespace

Task run(Operation& op) {
    if (!op.collective()) {
        if (op.o.kind == CATENA_OP_SEND) co_await send(op);
        else co_await receive(op);
        co_return;
    }
    const bool root = op.o.peer == op.group->info.rank;
    const bool carried = carries(op);
    Ballot ballot;
    ballot.mine->bytes =
        carried && (op.o.kind != CATENA_OP_BCAST || root) ? op.bytes(op.o.count) : 0;
    if (ballot.mine->bytes > 0) std::memcpy(ballot.mine->data, op.o.send, ballot.mine->bytes);
    co_await agree(op, catena::plugin::hash_of(op.agreed), ballot);
    const std::string nothing;
    if (!ballot.same()) co_await disagree(op, op.agreed, nothing);
    if (op.o.kind == CATENA_OP_BARRIER) co_return;
    if (carried) {
        if (op.o.kind == CATENA_OP_BCAST ? root : op.o.kind == CATENA_OP_REDUCE && !root) co_return;
        if (ballot.mine->bytes > 0) std::memcpy(op.o.recv, ballot.mine->data, ballot.mine->bytes);
        if (op.o.kind != CATENA_OP_BCAST) divide_mean(op, op.o.recv, op.o.count);
        co_return;
    }
    if (op.group->info.size == 1) {
        run_alone(op);
        co_return;
    }
    switch (op.o.kind) {
        case CATENA_OP_ALLREDUCE: co_await allreduce(op); break;
        case CATENA_OP_REDUCE:
        case CATENA_OP_BCAST: co_await chain(op); break;
        case CATENA_OP_ALLGATHER: co_await allgather(op); break;
        case CATENA_OP_REDUCE_SCATTER: co_await reduce_scatter(op); break;
        default: co_await agree_on_counts(op); co_await exchange(op);
    }
}

}  // namespace catena_mpi
