// Operations of the communicator "nccl": values, memory in place, streams, groups.
#include <algorithm>
#include <cmath>

#include <testing/exchange.hpp>

#include "ranks.hpp"

using namespace catena::testing;
using namespace nccl_test;

namespace {

Values values(int rank, std::size_t n) {
    Values v;
    for (std::size_t i = 0; i < n; ++i)
        v.push_back(static_cast<double>((static_cast<std::size_t>(rank) * 3 + i) % 5 + 1));
    return v;
}
Values sums(int size, std::size_t n) {
    Values v(n, 0);
    for (int r = 0; r < size; ++r)
        for (std::size_t i = 0; i < n; ++i) v[i] += values(r, n)[i];
    return v;
}

// Returns what is wrong with an operation on memory of the rank's device, or an empty text.
std::string wrong(Rank& rank, const Form& form) {
    Exchange exchange(form, rank.info.rank, rank.info.size);
    std::vector<std::pair<Array*, void*>> blocks;
    const catena_operation own = exchange.on([&](Array& a) {
        return blocks.emplace_back(&a, rank.copy(a.data<char>(), a.nbytes())).second;
    });
    catena_operation o = rank.operation(form.kind, own.send, own.recv, own.count);
    o.dtype = own.dtype, o.reduction = own.reduction, o.peer = own.peer;
    o.send_counts = own.send_counts, o.recv_counts = own.recv_counts;
    const std::string text = rank.run(o);
    for (const auto& [array, data] : blocks) rank.fetch(array->data<char>(), data, array->nbytes());
    return text.empty() ? exchange.wrong() : text;
}

}  // namespace

TEST_CASE("reductions of every dtype, in place and out of place") {
    with_all_sizes([](Rank& rank) {
        for (const catena_dtype d : reducible_dtypes)
            for (int reduction = 0; reduction <= CATENA_REDUCE_PROD; ++reduction)
                for (const bool in_place : {false, true}) {
                    if (d.bits == 16 && !is_floating(d)) continue;  // NCCL has no int16
                    const Form form = {
                        .dtype = d, .reduction = reduction, .count = 37, .in_place = in_place};
                    CAPTURE(form.text());
                    const std::string text = wrong(rank, form);
                    if (has_reduction(d, reduction)) CHECK(text == "");
                    else CHECK(rank.status == CATENA_E_DTYPE);
                }
    });
}

TEST_CASE("every operation, to and from each rank, with even and uneven pieces") {
    with_all_sizes([](Rank& rank) {
        for (int kind = CATENA_OP_REDUCE; kind <= CATENA_OP_ALLTOALL; ++kind)
            for (int root = 0; root < rank.info.size; ++root)
                for (const bool pieces : {false, true})
                    for (const int place :
                         {0, 1, 2}) {  // out of place, the own piece, the beginning
                        if (pieces && !has_pieces(kind)) continue;
                        Form form = {.kind = kind, .count = 11, .pieces = pieces};
                        if (!plugin::reduces(kind)) form.dtype = dtype_of<std::int16_t>();
                        form.in_place = place > 0, form.at_begin = place == 2, form.root = root;
                        CAPTURE(form.text());
                        CHECK(wrong(rank, form) == "");
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
        CHECK(rank.get(data, 5) == sums(3, 5));
        std::swap(rank.comm, all);
        table().close(all);
    });
}
