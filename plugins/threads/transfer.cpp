// Comparison of what the ranks started, and the transfer of data between their memory.
#include <algorithm>
#include <bit>
#include <cstring>

#include "team.hpp"

namespace catena_threads {

using namespace catena::plugin;

namespace {

constexpr std::uint64_t line = 64;             // bytes of a cache line
constexpr std::uint64_t block_bytes = 16384;   // of partial results, which stay in the L1 cache
constexpr std::uint64_t copy_bytes = 4 << 20;  // between looks whether the group has failed

// Reduces elements first .. first + n of ranks from .. to in the order ((0 + 1) + (2 + 3)) + ... into
// `out`; `spare` has room for more partial results. A pair's sum does not depend on the other ranks.
struct Tree {
    const std::vector<const std::byte*>& sends;
    catena_dtype dtype;
    std::int32_t reduction;

    void operator()(std::byte* out, std::byte* spare, std::uint64_t first, std::uint64_t n,
                    std::size_t from, std::size_t to) const {
        const std::size_t item = item_bytes(dtype);
        if (to - from == 1) {
            std::memcpy(out, sends[from] + first * item, n * item);
            return;
        }
        const std::size_t middle = from + std::bit_ceil(to - from) / 2;
        (*this)(out, spare, first, n, from, middle);
        if (to - middle == 1)
            return reduce_into(out, sends[middle] + first * item, n, dtype, reduction);
        (*this)(spare, spare + block_bytes, first, n, middle, to);
        reduce_into(out, spare, n, dtype, reduction);
    }
};

}  // namespace

// Fails unless all ranks started the same. The text names the first that differs from the majority.
void Team::compare(std::uint64_t sequence) {
    const auto text = [&](std::int32_t r) -> const std::string& {
        return job_of(r, sequence).agreement;
    };
    bool same = true;
    for (std::int32_t r = 1; r < size; ++r) same = same && text(r) == text(0);
    if (same) return compare_pieces(sequence);
    std::vector<std::string> texts;
    for (std::int32_t r = 0; r < size; ++r) texts.push_back(text(r));
    const auto usual = static_cast<std::int32_t>(usual_rank(texts));
    std::int32_t odd = 0;
    while (text(odd) == text(usual)) ++odd;
    const Job &right = job_of(usual, sequence), &wrong = job_of(odd, sequence);
    throw Error(CATENA_E_DEVICE,
                failure(wrong.info, right.o, right.agreement,
                        wrong.label == right.label ? wrong.agreement : wrong.text()));
}

void Team::compare_pieces(std::uint64_t sequence) {
    const auto differ = [](const Job& sender, std::uint64_t sent, const Job& receiver,
                           std::uint64_t received) {
        if (sent == received) return;
        throw Error(CATENA_E_DEVICE, failure(sender.info, sender.o,
                                             std::to_string(received) + " elements for " +
                                                 rank_text(receiver.info.rank),
                                             std::to_string(sent)));
    };
    const std::int32_t kind = job_of(0, sequence).o.kind;
    if (!exchanges(kind)) return;
    const std::int32_t root = job_of(0, sequence).o.peer;
    for (std::int32_t s = 0; s < size; ++s)
        for (std::int32_t r = 0; r < size; ++r) {
            const Job &from = job_of(s, sequence), &to = job_of(r, sequence);
            const auto pos_s = static_cast<std::size_t>(s), pos_r = static_cast<std::size_t>(r);
            if (kind == CATENA_OP_GATHER && r == root)
                differ(from, from.o.count, to, to.recvs.counts[pos_s]);
            if (kind == CATENA_OP_SCATTER && s == root)
                differ(from, from.sends.counts[pos_r], to, to.o.count);
            if (kind == CATENA_OP_ALLTOALL)
                differ(from, from.sends.counts[pos_r], to, to.recvs.counts[pos_s]);
        }
}

// The bytes that a rank sends if the ranks form a ring.
std::uint64_t Team::link_bytes(const Job& job) {
    const auto n = static_cast<std::uint64_t>(size);
    const catena_operation& o = job.o;
    switch (o.kind) {
        case CATENA_OP_ALLREDUCE: return job.bytes(o.count) * 2 * (n - 1) / n;
        case CATENA_OP_ALLGATHER: return job.bytes(job.recvs.total()) * (n - 1) / n;
        case CATENA_OP_REDUCE_SCATTER: return job.bytes(job.sends.total()) * (n - 1) / n;
        case CATENA_OP_REDUCE:
        case CATENA_OP_BCAST: return job.bytes(o.count);
        case CATENA_OP_GATHER: return job.bytes(job_of(o.peer, job.sequence).recvs.total());
        case CATENA_OP_SCATTER: return job.bytes(job_of(o.peer, job.sequence).sends.total());
        case CATENA_OP_ALLTOALL: {
            std::uint64_t most = 0;
            for (std::int32_t r = 0; r < size; ++r)
                most = std::max(most, job_of(r, job.sequence).sends.total());
            return job.bytes(most);
        }
        default: return 0;
    }
}

void Team::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    if (to == from) return;
    for (std::uint64_t i = 0; i < bytes && !failed(); i += copy_bytes)
        std::memcpy(to + i, from + i, std::min(copy_bytes, bytes - i));
}

// Each rank copies from the others' memory what it receives.
void Team::transfer(std::int32_t rank, const Job& job, std::vector<std::byte>& later) {
    const catena_operation& o = job.o;
    if (reduces(o.kind)) return reduce(rank, job, later);
    const auto own = static_cast<std::size_t>(rank);
    const bool root = rank == o.peer;
    std::byte* to = job.recv();
    std::uint64_t received = job.recvs.offsets.empty() ? o.count : job.recvs.total();
    if ((o.kind == CATENA_OP_BCAST && root) || (o.kind == CATENA_OP_GATHER && !root)) received = 0;
    // Others read what this rank sends, so results are not written there yet.
    bool sends = o.kind != CATENA_OP_BCAST && (o.kind != CATENA_OP_SCATTER || root);
    const std::uint64_t sent = job.sends.offsets.empty() ? o.count : job.sends.total();
    if (!job.recvs.offsets.empty() && job.sends.offsets.empty() && job.recv() != nullptr &&
        job.send() == to + job.bytes(job.recvs.offsets[own]))
        sends = false;  // in place, in its own piece
    if (!job.sends.offsets.empty() && job.recvs.offsets.empty() && job.send() != nullptr &&
        to == job.send() + job.bytes(job.sends.offsets[own]))
        sends = false;
    if (sends && overlap(job.send(), job.bytes(sent), to, job.bytes(received))) {
        later.resize(job.bytes(received));
        to = later.data();
    }
    if (received == 0) return;
    const auto pull = [&](std::int32_t from, std::uint64_t send_at, std::uint64_t recv_at,
                          std::uint64_t count) {
        if (count == 0) return;
        copy(to + job.bytes(recv_at), job_of(from, job.sequence).send() + job.bytes(send_at),
             job.bytes(count));
    };
    if (o.kind == CATENA_OP_BCAST) return pull(o.peer, 0, 0, o.count);
    if (o.kind == CATENA_OP_SCATTER)
        return pull(o.peer, job_of(o.peer, job.sequence).sends.offsets[own], 0, o.count);
    for (std::int32_t k = 0; k < size; ++k) {
        const std::int32_t r = (rank + k) % size;  // the ranks begin at different ones
        const auto i = static_cast<std::size_t>(r);
        const std::uint64_t at =
            o.kind == CATENA_OP_ALLTOALL ? job_of(r, job.sequence).sends.offsets[own] : 0;
        pull(r, at, job.recvs.offsets[i], job.recvs.counts[i]);
    }
}

// Each rank reduces one segment of all ranks' data and writes it to all that receive it.
void Team::reduce(std::int32_t rank, const Job& job, std::vector<std::byte>& later) {
    const catena_operation& o = job.o;
    const std::uint64_t item = job.item;
    const auto own = static_cast<std::size_t>(rank);
    std::uint64_t first = 0, end = 0;   // elements of send
    std::uint64_t begin = 0;            // the element of send that receivers have first
    std::vector<std::byte*> receivers;  // their memory
    std::vector<const std::byte*> sends;
    for (std::int32_t r = 0; r < size; ++r) sends.push_back(job_of(r, job.sequence).send());
    if (o.kind == CATENA_OP_REDUCE_SCATTER) {
        first = begin = job.sends.offsets[own];
        end = first + o.count;
        if (first == end) return;
        std::byte* to = job.recv();
        if (to != job.send() + first * item &&
            overlap(job.send(), job.bytes(job.sends.total()), to, job.bytes(o.count))) {
            later.resize(job.bytes(o.count));
            to = later.data();
        }
        receivers.push_back(to);
    } else {
        const auto ranks = static_cast<std::uint64_t>(size);
        const std::uint64_t step = std::max<std::uint64_t>(line / item, 1);
        const std::uint64_t steps = (o.count + step - 1) / step, each = (steps + ranks - 1) / ranks;
        first = std::min(o.count, own * each * step);
        end = std::min(o.count, first + each * step);
        for (std::int32_t r = 0; r < size; ++r)
            if (o.kind == CATENA_OP_ALLREDUCE || r == o.peer)
                receivers.push_back(job_of(r, job.sequence).recv());
    }
    if (first == end) return;
    const auto ranks = static_cast<std::size_t>(size);
    std::vector<std::byte> partial(block_bytes * (std::bit_width(ranks) + 1));
    const Tree tree{sends, o.dtype, o.reduction};
    for (const std::uint64_t block = block_bytes / item; first < end && !failed(); first += block) {
        const std::uint64_t n = std::min(block, end - first);
        tree(partial.data(), partial.data() + block_bytes, first, n, 0, ranks);
        if (o.reduction == CATENA_REDUCE_MEAN) divide(partial.data(), n, o.dtype, size);
        for (std::byte* to : receivers)
            std::memcpy(to + (first - begin) * item, partial.data(), n * item);
    }
}

// split(): the first rank of each part makes it; then the others take it from that rank's job.
void Team::form_part(std::int32_t rank, Job& job) {
    if (job.color < 0) return;
    std::int32_t ranks = 0, first = rank;
    for (std::int32_t r = size - 1; r >= 0; --r) {
        const Job& other = job_of(r, job.sequence);
        if (other.color != job.color) continue;
        ++ranks;
        first = r;
        if (std::pair(other.key, r) < std::pair(job.key, rank)) ++job.part_rank;
    }
    if (first == rank) job.part = std::make_shared<Team>(ranks, link);
}

void Team::take_part(Job& job) {
    if (job.color < 0) return;
    for (std::int32_t r = 0; r < job.info.rank; ++r)
        if (const Job& other = job_of(r, job.sequence); other.color == job.color) {
            job.part = other.part;
            return;
        }
}

}  // namespace catena_threads
