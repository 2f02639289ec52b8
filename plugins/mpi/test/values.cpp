// Operations: dtypes, reductions, in place or not, sizes.
#include <catena/plugin/communicator.hpp>
#include <testing/exchange.hpp>

#include <bit>
#include <deque>
#include <limits>
#include <random>

#include "comm.hpp"

namespace mpi_test {
namespace {

using namespace catena::testing;

bool has_root(int kind) {
    return kind == CATENA_OP_REDUCE || kind == CATENA_OP_BCAST || kind == CATENA_OP_GATHER ||
           kind == CATENA_OP_SCATTER;
}
void run_form(const Comm& comm, const Form& form) {
    const Exchange exchange(form, comm.rank(), comm.size());
    comm.begin(exchange.operation).wait();
    if (const std::string wrong = exchange.wrong(); !wrong.empty())
        throw std::runtime_error(form.text() + ", root " + std::to_string(form.root) + ": " +
                                 wrong);
}

// Sends to the next rank and receives from the previous one.
void ring(const Comm& comm, catena_dtype dtype, std::uint64_t n) {
    const int rank = comm.rank(), size = comm.size();
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    if (size == 1) return;
    const std::vector<char> out(n * dtype.bits / 8, static_cast<char>(rank));
    std::vector<char> in(out.size(), -1);
    Args args = {.kind = CATENA_OP_SEND, .peer = right, .tag = 7, .dtype = dtype, .count = n};
    args.send = out.data();
    const Work work = comm.start(args);
    args.kind = CATENA_OP_RECV, args.peer = left, args.recv = in.data();
    comm.run(args);
    work.wait();
    for (const char value : in) EXPECT(value == static_cast<char>(left));
}

}  // namespace

void test_operations(const Comm& comm) {
    for (const catena_dtype dtype : reducible_dtypes) {
        const bool common = dtype.code == CATENA_CODE_FLOAT && dtype.bits == 32;
        // 8 KB are carried by the agreement, then there are segments of 256 KB
        std::vector<std::uint64_t> counts = {0, 1, 7, 5001};
        if (common) counts.insert(counts.end(), {2048, 2049, 65'536, 400'003});
        for (const std::uint64_t n : counts) {
            for (int kind = CATENA_OP_ALLREDUCE; kind <= CATENA_OP_ALLTOALL; ++kind)
                for (int reduction = 0; reduction <= CATENA_REDUCE_PROD; ++reduction) {
                    const bool reduces = catena::plugin::reduces(kind);
                    if (reduces ? !has_reduction(dtype, reduction) : reduction > 0) continue;
                    if (reduces && n > 5001 && reduction != CATENA_REDUCE_MEAN) continue;
                    for (int root = 0; root < (has_root(kind) ? comm.size() : 1); ++root)
                        for (const bool pieces : {false, true})
                            for (const int place : {0, 1, 2}) {  // 2: in place, at the begin
                                if (!has_pieces(kind) && (pieces || place == 2)) continue;
                                run_form(comm, {kind, dtype, reduction, n, pieces, place > 0, root,
                                                place == 2});
                            }
                }
            ring(comm, dtype, n);
        }
    }
    for (int i = 0; i < 100; ++i) comm.run({});
}

// The bits of sums of random numbers, and of NaN, are the same on all ranks, in each run.
void test_bits(const Comm& comm) {
    std::vector<std::uint64_t> hashes;
    for (int run = 0; run < 2; ++run) {
        std::mt19937 random(static_cast<unsigned>(comm.rank()));
        std::normal_distribution<float> normal;
        std::uint64_t hash = 0;
        for (const std::uint64_t n : {1u, 100u, 2049u, 300'000u})
            for (const int reduction : {CATENA_REDUCE_SUM, CATENA_REDUCE_MEAN, CATENA_REDUCE_MIN})
                for (const bool in_place : {false, true}) {
                    std::vector<float> x(n), y(n);
                    for (float& value : x) value = normal(random);
                    if (comm.rank() == 0) x[0] = std::numeric_limits<float>::quiet_NaN();
                    if (comm.rank() == 1) x[n / 2] = -std::numeric_limits<float>::quiet_NaN();
                    if (comm.rank() == 1) x[n - 1] = -0.0f;
                    comm.run({.kind = CATENA_OP_ALLREDUCE,
                              .reduction = reduction,
                              .send = x.data(),
                              .recv = in_place ? x.data() : y.data(),
                              .count = n});
                    for (const float value : in_place ? x : y)
                        hash = hash * 1000003 + std::bit_cast<std::uint32_t>(value);
                }
        hashes.push_back(hash);
    }
    EXPECT(hashes[0] == hashes[1]);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(comm.size()));
    comm.run({.kind = CATENA_OP_ALLGATHER,
              .dtype = {CATENA_CODE_UINT, 64, 1},
              .send = hashes.data(),
              .recv = all.data(),
              .count = 1});
    for (const std::uint64_t hash : all) EXPECT(hash == hashes[0]);
    if (comm.rank() == 0) std::printf("bits %016llx\n", static_cast<unsigned long long>(hashes[0]));
}

// Many operations in flight, waited for in other orders, tested, and released while they run.
void test_many(const Comm& comm) {
    const int rank = comm.rank(), size = comm.size();
    constexpr int n = 5000;  // more than run at a time
    std::vector<float> x(n, static_cast<float>(rank));
    std::deque<Work> works;
    for (int i = 0; i < n; ++i)
        works.push_back(comm.start({.kind = CATENA_OP_ALLREDUCE,
                                    .send = &x[static_cast<std::size_t>(i)],
                                    .recv = &x[static_cast<std::size_t>(i)],
                                    .count = 1}));
    while (works.size() > 100) works.pop_back();  // released, and they run on
    for (const Work& work : works)
        while (!work.test()) {
        }
    // Those that were released may end after others, but at most 4095 later ones run beside them.
    for (int i = 1; i < 4096; ++i) static_cast<void>(comm.start({}));
    comm.run({});
    const auto sum = static_cast<float>(size * (size - 1) / 2);
    for (const float value : x) EXPECT(value == sum);

    // large ones of several kinds at a time
    constexpr std::uint64_t large = 100'000;
    std::vector<std::vector<float>> data;
    std::vector<Work> some;
    for (int i = 0; i < 20; ++i) {
        auto& a = data.emplace_back(large, static_cast<float>(rank + i));
        const int kind = i % 3 == 0   ? CATENA_OP_BCAST
                         : i % 3 == 1 ? CATENA_OP_ALLREDUCE
                                      : CATENA_OP_REDUCE;
        some.push_back(comm.start(
            {.kind = kind, .peer = i % size, .send = a.data(), .recv = a.data(), .count = large}));
    }
    while (!some.empty()) {
        some.back().wait();
        some.pop_back();
    }
    for (int i = 0; i < 20; ++i) {
        const int root = i % size;
        const float value = i % 3 == 0                   ? static_cast<float>(root + i)
                            : i % 3 == 2 && root != rank ? static_cast<float>(rank + i)
                                                         : sum + static_cast<float>(size * i);
        for (const float got : data[static_cast<std::size_t>(i)]) EXPECT(got == value);
    }

    // messages of different tags in another order, with collective operations between them
    if (size > 1 && rank < 2) {
        std::vector<int> out(8), in(8, -1);
        const catena_dtype int32 = {CATENA_CODE_INT, 32, 1};
        std::vector<Work> messages;
        for (int i = 0; i < 8; ++i) {
            const auto s = static_cast<std::size_t>(i), r = static_cast<std::size_t>(7 - i);
            out[s] = 100 * rank + i;
            messages.push_back(comm.start({.kind = CATENA_OP_SEND,
                                           .peer = 1 - rank,
                                           .tag = i,
                                           .dtype = int32,
                                           .send = &out[s],
                                           .count = 1}));
            messages.push_back(comm.start({.kind = CATENA_OP_RECV,
                                           .peer = 1 - rank,
                                           .tag = 7 - i,
                                           .dtype = int32,
                                           .recv = &in[r],
                                           .count = 1}));
        }
        for (const Work& work : messages) work.wait();
        for (int i = 0; i < 8; ++i) EXPECT(in[static_cast<std::size_t>(i)] == 100 * (1 - rank) + i);
    }
    comm.run({});
}

void test_groups(const Comm& comm) {
    const int rank = comm.rank(), size = comm.size();
    EXPECT(comm.info().local_size >= 1 && comm.info().local_rank < comm.info().local_size);
    const auto sum_of_ranks = [&](const Comm& group) {
        int x = rank;
        group.run({.kind = CATENA_OP_ALLREDUCE,
                   .dtype = {CATENA_CODE_INT, 32, 1},
                   .send = &x,
                   .recv = &x,
                   .count = 1});
        return x;
    };
    // even and odd ranks, in the opposite order
    const Comm half = comm.split(rank % 2, -rank);
    int members = 0, sum = 0, before = 0;
    for (int r = rank % 2; r < size; r += 2) {
        ++members;
        sum += r;
        before += r > rank;
    }
    EXPECT(half.size() == members && half.rank() == before);
    EXPECT(half.info().local_size <= half.size());
    EXPECT(sum_of_ranks(half) == sum);
    // both groups at the same time
    int a = 1, b = 1;
    const catena_dtype int32 = {CATENA_CODE_INT, 32, 1};
    const Work in_half = half.start(
        {.kind = CATENA_OP_ALLREDUCE, .dtype = int32, .send = &a, .recv = &a, .count = 1});
    const Work in_all = comm.start(
        {.kind = CATENA_OP_ALLREDUCE, .dtype = int32, .send = &b, .recv = &b, .count = 1});
    in_all.wait();
    in_half.wait();
    EXPECT(a == members && b == size);
    // equal keys keep the order; color < 0 has no group
    const Comm same = comm.split(0, 0);
    EXPECT(same.rank() == rank && same.size() == size);
    const Comm none = comm.split(rank == 0 ? -1 : 3, 0);
    EXPECT(static_cast<bool>(none) == (rank != 0));
    if (none) EXPECT(none.size() == size - 1 && sum_of_ranks(none) == size * (size - 1) / 2);
    // groups that come and go
    for (int i = 0; i < 20; ++i) EXPECT(sum_of_ranks(comm.split(0, i)) == size * (size - 1) / 2);
    // a failure of one group leaves the others alone
    {
        const Comm part = comm.split(0, 0);
        if (rank == 0) part.abort("enough");
        try {
            for (;;) sum_of_ranks(part);
        } catch (const Error& error) {
            EXPECT(std::string(error.what()) == "rank 0: aborted: enough");
        }
        EXPECT(sum_of_ranks(comm) == size * (size - 1) / 2);
        EXPECT(sum_of_ranks(half) == sum);
    }
    EXPECT(sum_of_ranks(comm) == size * (size - 1) / 2);
    // a group that is closed before its part
    const Comm part = comm.split(0, 0).split(0, 0);
    comm.run({});
    EXPECT(sum_of_ranks(part) == size * (size - 1) / 2);
}

// Calls that a single rank refuses; nothing is started, so the group remains usable.
void test_refusals(const Comm& comm) {
    const auto refused = [&](const Args& args, catena_status status, const std::string& text) {
        try {
            static_cast<void>(comm.start(args));
        } catch (const Error& error) {
            EXPECT(error.status == status);
            if (std::string(error.what()).find(text) == std::string::npos)
                throw std::runtime_error("expected " + text + ", got " + error.what());
            return;
        }
        EXPECT(!"expected an error");
    };
    float x = 0;
    refused({.kind = CATENA_OP_ALLREDUCE,
             .reduction = CATENA_REDUCE_MEAN,
             .dtype = {CATENA_CODE_INT, 32, 1},
             .send = &x,
             .recv = &x,
             .count = 1},
            CATENA_E_DTYPE, "[allreduce] mean: expected a floating dtype, got int32");
    refused({.kind = CATENA_OP_BCAST, .peer = comm.size(), .send = &x, .recv = &x, .count = 1},
            CATENA_E_INVALID, "[bcast] root: expected a rank from 0 to");
    refused({.timeout = -0.5}, CATENA_E_INVALID,
            "[barrier] timeout: expected 0 or more seconds, got -0.5");
    refused({.kind = 99}, CATENA_E_UNSUPPORTED, "kind: expected 0 to 10, got 99");
    if (comm.rank() == 0 && comm.size() > 1)
        refused({.kind = CATENA_OP_ALLREDUCE, .send = &x, .recv = nullptr, .count = 1},
                CATENA_E_INVALID, "[allreduce] recv: expected memory, got NULL");
    comm.run({});
}

}  // namespace mpi_test
