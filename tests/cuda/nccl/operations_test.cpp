// Operations of the communicator "nccl": values, memory in place, streams, groups.
#include <algorithm>
#include <cmath>

#include "ranks.hpp"

using namespace nccl_test;

namespace {

// Element i of a rank's data.
double value(int rank, std::size_t i) {
    return static_cast<double>((static_cast<std::size_t>(rank) * 3 + i) % 5 + 1);
}
Values values(int rank, std::size_t n, std::size_t first = 0) {
    Values v;
    for (std::size_t i = 0; i < n; ++i) v.push_back(value(rank, first + i));
    return v;
}
double reduced(int size, std::size_t i, int reduction) {
    double x = value(0, i);
    for (int r = 1; r < size; ++r) {
        const double y = value(r, i);
        x = reduction == CATENA_REDUCE_MIN    ? std::min(x, y)
            : reduction == CATENA_REDUCE_MAX  ? std::max(x, y)
            : reduction == CATENA_REDUCE_PROD ? x * y
                                              : x + y;
    }
    return reduction == CATENA_REDUCE_MEAN ? x / size : x;
}
Values all_reduced(int size, std::size_t n, int reduction = CATENA_REDUCE_SUM,
                   std::size_t first = 0) {
    Values v;
    for (std::size_t i = 0; i < n; ++i) v.push_back(reduced(size, first + i, reduction));
    return v;
}
void append(Values& to, const Values& more) { to.insert(to.end(), more.begin(), more.end()); }

// The count of piece r, and of the pieces before.
using Counts = std::vector<std::uint64_t>;
Counts counts_of(int size, bool even) {
    Counts counts;
    for (int r = 0; r < size; ++r)
        counts.push_back(even ? 4 : static_cast<std::uint64_t>((r * 3 + 2) % 4));  // 2, 1, 0
    return counts;
}
std::uint64_t before(const Counts& counts, int rank) {
    std::uint64_t n = 0;
    for (int r = 0; r < rank; ++r) n += counts[static_cast<std::size_t>(r)];
    return n;
}

}  // namespace

TEST_CASE("allreduce: every dtype and reduction, in place and out of place") {
    with_all_sizes([](Rank& rank) {
        const std::size_t n = 37;
        for (const catena_dtype d : {f32, f64, f16, bf16, i8, i32, i64, u8, u32, u64, boolean})
            for (int reduction = 0; reduction <= CATENA_REDUCE_PROD; ++reduction)
                for (const bool in_place : {false, true}) {
                    CAPTURE(plugin::text_of(d));
                    CAPTURE(reduction);
                    const bool floats = d.code == CATENA_CODE_FLOAT || d.code == CATENA_CODE_BFLOAT;
                    char* const send = rank.put(values(rank.info.rank, n), d);
                    char* const recv = in_place ? send : rank.room(n, d);
                    catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, send, recv, n);
                    o.dtype = d;
                    o.reduction = reduction;
                    const std::string text = rank.run(o);
                    if ((reduction == CATENA_REDUCE_MEAN && !floats) ||
                        (d.code == CATENA_CODE_BOOL && reduction != CATENA_REDUCE_MIN &&
                         reduction != CATENA_REDUCE_MAX)) {
                        CHECK(rank.status == CATENA_E_DTYPE);
                        continue;
                    }
                    CHECK(text == "");
                    const Values got = rank.get(recv, n, d);
                    const Values expected = all_reduced(rank.info.size, n, reduction);
                    const double bound = reduction == CATENA_REDUCE_MEAN ? 1e-2 : 0;
                    for (std::size_t i = 0; i < n; ++i)
                        CHECK(std::abs(got[i] - expected[i]) <= bound);
                }
    });
}

TEST_CASE("reduce and bcast, to and from each rank") {
    with_all_sizes([](Rank& rank) {
        const std::size_t n = 11;
        const int me = rank.info.rank;
        for (int root = 0; root < rank.info.size; ++root)
            for (const bool in_place : {false, true}) {
                char* const send = rank.put(values(me, n));
                char* const recv = in_place ? send : rank.room(n);
                catena_operation o = rank.operation(CATENA_OP_REDUCE, send, recv, n);
                o.peer = root;
                if (me != root) o.recv = nullptr;
                CHECK(rank.run(o) == "");
                const Values untouched = in_place ? values(me, n) : Values(n, -1);
                CHECK(rank.get(recv, n) ==
                      (me == root ? all_reduced(rank.info.size, n) : untouched));

                char* const data = rank.put(values(me, n), i16);  // NCCL has no int16
                o = rank.operation(CATENA_OP_BCAST, me == root ? data : nullptr,
                                   me == root && !in_place ? nullptr : data, n);
                o.dtype = i16;
                o.peer = root;
                CHECK(rank.run(o) == "");
                CHECK(rank.get(data, n, i16) == values(root, n));
            }
    });
}

TEST_CASE("allgather and reduce_scatter, with even and uneven pieces") {
    with_all_sizes([](Rank& rank) {
        const int me = rank.info.rank, size = rank.info.size;
        for (const bool even : {true, false})
            for (const int place : {0, 1, 2}) {  // out of place, the own piece, the beginning
                CAPTURE(even);
                CAPTURE(place);
                const Counts counts = counts_of(size, even);
                const std::uint64_t total = before(counts, size),
                                    own = counts[static_cast<std::size_t>(me)];
                const std::uint64_t offset = before(counts, me);
                Values gathered;
                for (int r = 0; r < size; ++r)
                    append(gathered, values(r, counts[static_cast<std::size_t>(r)]));
                Values begin(total, -1);
                const Values mine = values(me, own);
                const auto at = place == 1 ? static_cast<std::ptrdiff_t>(offset) : 0;
                if (place != 0) std::ranges::copy(mine, begin.begin() + at);
                char* const recv = rank.put(begin);
                catena_operation o = rank.operation(
                    CATENA_OP_ALLGATHER,
                    place == 0 ? rank.put(mine) : recv + static_cast<std::size_t>(at) * 4, recv,
                    own);
                if (!even) o.recv_counts = counts.data();
                CHECK(rank.run(o) == "");
                CHECK(rank.get(recv, total) == gathered);

                char* const send = rank.put(values(me, total));
                char* const piece = place == 0   ? rank.room(own)
                                    : place == 1 ? send + offset * 4
                                                 : send;
                o = rank.operation(CATENA_OP_REDUCE_SCATTER, send, piece, own);
                if (!even) o.send_counts = counts.data();
                CHECK(rank.run(o) == "");
                CHECK(rank.get(piece, own) ==
                      all_reduced(size, own, CATENA_REDUCE_SUM, static_cast<std::size_t>(offset)));
            }
    });
}

TEST_CASE("gather and scatter, with even and uneven pieces") {
    with_all_sizes([](Rank& rank) {
        const int me = rank.info.rank, size = rank.info.size;
        for (const bool even : {true, false})
            for (const bool in_place : {false, true})
                for (int root = 0; root < size; ++root) {
                    const Counts counts = counts_of(size, even);
                    const std::uint64_t total = before(counts, size),
                                        own = counts[static_cast<std::size_t>(me)];
                    const std::uint64_t offset = before(counts, me);
                    Values gathered;
                    for (int r = 0; r < size; ++r)
                        append(gathered, values(r, counts[static_cast<std::size_t>(r)]));
                    Values begin(total, -1);
                    std::ranges::copy(values(me, own),
                                      begin.begin() + static_cast<std::ptrdiff_t>(offset));
                    char* const recv = me == root ? rank.put(begin) : nullptr;
                    catena_operation o = rank.operation(
                        CATENA_OP_GATHER,
                        in_place && me == root ? recv + offset * 4 : rank.put(values(me, own)),
                        recv, own);
                    o.peer = root;
                    if (!even && me == root) o.recv_counts = counts.data();
                    CHECK(rank.run(o) == "");
                    if (me == root) CHECK(rank.get(recv, total) == gathered);

                    char* const send = me == root ? rank.put(values(root, total)) : nullptr;
                    char* const piece = in_place && me == root ? send + offset * 4 : rank.room(own);
                    o = rank.operation(CATENA_OP_SCATTER, send, piece, own);
                    o.peer = root;
                    if (!even && me == root) o.send_counts = counts.data();
                    CHECK(rank.run(o) == "");
                    CHECK(rank.get(piece, own) == values(root, own, offset));
                }
    });
}

TEST_CASE("alltoall, with even and uneven pieces") {
    with_all_sizes([](Rank& rank) {
        const int me = rank.info.rank, size = rank.info.size;
        // Rank a has count(a, b) elements for rank b.
        for (const bool even : {true, false})
            for (const bool in_place : {false, true}) {
                const auto count = [&](int a, int b) {
                    return static_cast<std::uint64_t>(even ? 3 : (a * b + b + a) % 3);
                };
                Counts to, from;
                Values expected;
                for (int r = 0; r < size; ++r) {
                    to.push_back(count(me, r));
                    from.push_back(count(r, me));
                    std::size_t first = 0;
                    for (int b = 0; b < me; ++b) first += count(r, b);
                    append(expected, values(r, count(r, me), first));
                }
                char* const send = rank.put(values(me, before(to, size)));
                char* const recv = in_place ? send : rank.room(before(from, size));
                catena_operation o = rank.operation(CATENA_OP_ALLTOALL, send, recv, 3);
                if (!even) {
                    o.send_counts = to.data();
                    o.recv_counts = from.data();
                }
                CHECK(rank.run(o) == "");
                CHECK(rank.get(recv, before(from, size)) == expected);
            }
    });
}

TEST_CASE("send and recv: all ranks send first, in both directions of a ring") {
    with_all_sizes([](Rank& rank) {
        const int me = rank.info.rank, size = rank.info.size;
        if (size == 1) return;
        const std::size_t n = 100000;
        for (const int step : {1, size - 1}) {
            const int next = (me + step) % size, last = (me + size - step) % size;
            std::vector<char*> sent, received;
            for (int tag = 0; tag < 3; ++tag) {
                sent.push_back(rank.put(values(me + tag, n)));
                received.push_back(rank.room(n));
            }
            CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
            std::vector<catena_work*> works;
            for (const int kind : {CATENA_OP_SEND, CATENA_OP_RECV})
                for (std::size_t tag = 0; tag < 3; ++tag) {
                    const bool sends = kind == CATENA_OP_SEND;
                    catena_operation o = rank.operation(kind, sent[tag], received[tag], n);
                    // the rank's stream waits for its sends, which wait for the next rank
                    o.stream = nullptr;
                    o.peer = sends ? next : last;
                    o.tag = static_cast<int>(tag);
                    works.push_back(rank.start(o));
                    CHECK(rank.text == "");
                    if (works.back() == nullptr) return;
                    rank.wait_on(works.back());
                }
            for (catena_work* work : works) CHECK(rank.finish(work) == "");
            for (int tag = 0; tag < 3; ++tag)
                CHECK(rank.get(received[static_cast<std::size_t>(tag)], n) ==
                      values(last + tag, n));
        }
    });
}

TEST_CASE("empty operations and barriers") {
    with_all_sizes([](Rank& rank) {
        for (const int kind :
             {CATENA_OP_ALLREDUCE, CATENA_OP_REDUCE, CATENA_OP_BCAST, CATENA_OP_ALLGATHER,
              CATENA_OP_REDUCE_SCATTER, CATENA_OP_GATHER, CATENA_OP_SCATTER, CATENA_OP_ALLTOALL}) {
            CAPTURE(kind);
            CHECK(rank.run(rank.operation(kind, nullptr, nullptr, 0)) == "");
            catena_operation barrier = {};
            barrier.struct_size = sizeof barrier;
            CHECK(rank.run(barrier) == "");
        }
    });
}

TEST_CASE("an operation begins after the work on its stream, and a stream can wait for it") {
    with_all_sizes([](Rank& rank) {
        const std::size_t n = 1000;
        float* pinned = nullptr;
        CHECK(cudaMallocHost(reinterpret_cast<void**>(&pinned), 2 * n * sizeof(float)) ==
              cudaSuccess);
        char* const data = rank.room(n);
        CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
        for (int round = 1; round <= 3; ++round) {
            for (std::size_t i = 0; i < n; ++i) pinned[i] = static_cast<float>(round);
            Gate gate(rank.stream);
            CHECK(cudaMemcpyAsync(data, pinned, n * sizeof(float), cudaMemcpyHostToDevice,
                                  rank.stream) == cudaSuccess);
            catena_work* const first =
                rank.start(rank.operation(CATENA_OP_ALLREDUCE, data, data, n));
            CHECK(rank.text == "");
            if (first == nullptr) return;
            rank.wait_on(first);
            CHECK(cudaMemcpyAsync(pinned + n, data, n * sizeof(float), cudaMemcpyDeviceToHost,
                                  rank.stream) == cudaSuccess);
            int32_t done = 1;
            CHECK(table().test(ctx, first, &done) == CATENA_OK);
            CHECK(done == 0);
            gate.go();
            CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
            CHECK(std::all_of(pinned + n, pinned + 2 * n, [&](float x) {
                return x == static_cast<float>(round * rank.info.size);
            }));
            CHECK(rank.finish(first) == "");
        }
        CHECK(cudaFreeHost(pinned) == cudaSuccess);
    });
}

TEST_CASE("many operations run at once, and may be released before they are done") {
    with_all_sizes([](Rank& rank) {
        char* const data = rank.put(Values(64, 1));
        catena_work* last = nullptr;
        for (int i = 0; i < 15; ++i) {
            if (last != nullptr) table().release(last);
            last = rank.start(rank.operation(CATENA_OP_ALLREDUCE, data, data, 64));
            CHECK(rank.text == "");
        }
        CHECK(rank.finish(last) == "");
        CHECK(rank.get(data, 1)[0] == std::pow(rank.info.size, 15));
    });
}

TEST_CASE("split: groups by color, ordered by key; they outlive their parent") {
    if (most_ranks() < 3) return;
    with_ranks(3, [](Rank& rank) {
        const int me = rank.info.rank;
        CHECK(rank.info.local_rank == me);
        CHECK(rank.info.local_size == 3);
        catena_comm* none = rank.comm;
        CHECK(table().split(ctx, rank.comm, me == 1 ? -1 : 0, -me, &none) == CATENA_OK);
        CHECK((none == nullptr) == (me == 1));
        catena_comm* all = nullptr;
        CHECK(table().split(ctx, rank.comm, 7, 0, &all) == CATENA_OK);
        if (all == nullptr) return;
        CHECK(Rank::info_of(all).rank == me);
        if (none != nullptr) {
            const catena_comm_info info = Rank::info_of(none);
            CHECK(info.size == 2);
            CHECK(info.rank == (me == 0 ? 1 : 0));
            table().close(rank.comm);
            rank.comm = none;
            char* const data = rank.put(values(me, 5));
            catena_operation o = rank.operation(CATENA_OP_BCAST, data, data, 5);
            o.peer = 0;
            CHECK(rank.run(o) == "");
            CHECK(rank.get(data, 5) == values(2, 5));
        }
        std::swap(rank.comm, all);
        char* const data = rank.put(values(me, 5));
        CHECK(rank.run(rank.operation(CATENA_OP_ALLREDUCE, data, data, 5)) == "");
        CHECK(rank.get(data, 5) == all_reduced(3, 5));
        std::swap(rank.comm, all);
        table().close(all);
    });
}
