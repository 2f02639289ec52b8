// Operations against values computed here: dtypes, reductions, in place or not, sizes.
#include <catena/plugin/half.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <random>
#include <utility>

#include "comm.hpp"

namespace mpi_test {
namespace {

using catena::plugin::BFloat16, catena::plugin::Float16;

struct Type {
    catena_dtype dtype;
    double (*read)(const void*);
    void (*write)(void*, double);
};
template <class T>
double read_number(const void* from) {
    T x;
    std::memcpy(&x, from, sizeof x);
    if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(x);
    else return catena::plugin::to_float(x);
}
template <class T>
void write_number(void* to, double value) {
    T x;
    if constexpr (std::is_floating_point_v<T>) x = static_cast<T>(value);
    else if constexpr (std::is_integral_v<T>) x = static_cast<T>(static_cast<std::int64_t>(value));
    else x = catena::plugin::to_half<T>(static_cast<float>(value));
    std::memcpy(to, &x, sizeof x);
}
template <class T>
Type type(unsigned code) {
    return {{static_cast<std::uint8_t>(code), sizeof(T) * 8, 1}, read_number<T>, write_number<T>};
}
const Type types[] = {type<std::int8_t>(CATENA_CODE_INT),    type<std::int16_t>(CATENA_CODE_INT),
                      type<std::int32_t>(CATENA_CODE_INT),   type<std::int64_t>(CATENA_CODE_INT),
                      type<std::uint8_t>(CATENA_CODE_UINT),  type<std::uint16_t>(CATENA_CODE_UINT),
                      type<std::uint32_t>(CATENA_CODE_UINT), type<std::uint64_t>(CATENA_CODE_UINT),
                      type<std::uint8_t>(CATENA_CODE_BOOL),  type<Float16>(CATENA_CODE_FLOAT),
                      type<BFloat16>(CATENA_CODE_BFLOAT),    type<float>(CATENA_CODE_FLOAT),
                      type<double>(CATENA_CODE_FLOAT)};

// Element i of rank r. Products of all ranks fit into every dtype.
double element(std::uint64_t i, int rank, const Type& t, int reduction) {
    const auto mixed = static_cast<int>((i * 7 + static_cast<std::uint64_t>(rank) * 3) % 5);
    if (t.dtype.code == CATENA_CODE_BOOL) return mixed % 2;
    if (reduction == CATENA_REDUCE_PROD) return mixed % 2 + 1;
    return t.dtype.code == CATENA_CODE_UINT ? mixed : mixed - 2;
}
double reduced(std::uint64_t i, int size, const Type& t, int reduction) {
    double result = element(i, 0, t, reduction);
    for (int r = 1; r < size; ++r) {
        const double x = element(i, r, t, reduction);
        switch (reduction) {
            case CATENA_REDUCE_MIN: result = std::min(result, x); break;
            case CATENA_REDUCE_MAX: result = std::max(result, x); break;
            case CATENA_REDUCE_PROD: result *= x; break;
            default: result += x;
        }
    }
    return reduction == CATENA_REDUCE_MEAN ? result / size : result;
}

struct Data {
    Data(const Type& t, std::uint64_t n) : item(t.dtype.bits / 8u), type(t), bytes(n * item + 1) {}
    void fill(std::uint64_t first, std::uint64_t n, std::uint64_t offset, int rank, int reduction) {
        for (std::uint64_t i = 0; i < n; ++i)
            type.write(at(first + i), element(offset + i, rank, type, reduction));
    }
    // From `first`: the reduction of all ranks, or rank's own elements, from `offset`.
    void expect_reduced(std::uint64_t n, std::uint64_t offset, int size, int reduction) const {
        for (std::uint64_t i = 0; i < n; ++i) expect(i, reduced(offset + i, size, type, reduction));
    }
    void expect_elements(std::uint64_t first, std::uint64_t n, std::uint64_t offset,
                         int rank) const {
        for (std::uint64_t i = 0; i < n; ++i)
            expect(first + i, element(offset + i, rank, type, CATENA_REDUCE_SUM));
    }
    void expect(std::uint64_t i, double value) const {
        const double got = type.read(at(i));
        // means of halves are rounded
        const double relative = item == 2 ? 0.01 : 1e-6;
        if (std::abs(got - value) > relative * std::abs(value))
            throw std::runtime_error("element " + std::to_string(i) + ": expected " +
                                     std::to_string(value) + ", got " + std::to_string(got));
    }
    std::byte* at(std::uint64_t i) { return bytes.data() + i * item; }
    const std::byte* at(std::uint64_t i) const { return bytes.data() + i * item; }

    std::uint64_t item;
    const Type& type;
    std::vector<std::byte> bytes;
};

void reductions(const Comm& comm, const Type& t, int reduction, std::uint64_t n, bool in_place) {
    const int rank = comm.rank(), size = comm.size();
    Args args = {.reduction = reduction, .dtype = t.dtype, .count = n, .label = "x"};
    Data send(t, n), recv(t, n);
    const auto run = [&](int kind, int root) {
        Data& from = in_place ? recv : send;
        from.fill(0, n, 0, rank, reduction);
        args.kind = kind;
        args.peer = root;
        args.send = from.at(0);
        args.recv = kind == CATENA_OP_REDUCE && root != rank ? nullptr : recv.at(0);
        comm.run(args);
        if (args.recv != nullptr) recv.expect_reduced(n, 0, size, reduction);
        if (!in_place || args.recv == nullptr)
            for (std::uint64_t i = 0; i < n; ++i) from.expect(i, element(i, rank, t, reduction));
    };
    run(CATENA_OP_ALLREDUCE, 0);
    for (int root = 0; root < size; ++root) run(CATENA_OP_REDUCE, root);

    // pieces of n + r elements, or of n
    for (const bool equal : {true, false}) {
        std::vector<std::uint64_t> counts;
        std::uint64_t total = 0, offset = 0;
        for (int r = 0; r < size; ++r) {
            counts.push_back(equal ? n : n + static_cast<std::uint64_t>(r));
            if (r < rank) offset += counts.back();
            total += counts.back();
        }
        const std::uint64_t own = counts[static_cast<std::size_t>(rank)];
        Data all(t, total), piece(t, own);
        all.fill(0, total, 0, rank, reduction);
        std::byte* const into = in_place ? all.at(offset) : piece.at(0);
        comm.run({.kind = CATENA_OP_REDUCE_SCATTER,
                  .reduction = reduction,
                  .dtype = t.dtype,
                  .send = all.at(0),
                  .recv = into,
                  .count = own,
                  .send_counts = equal ? nullptr : &counts,
                  .label = "x"});
        std::memcpy(piece.at(0), into, own * piece.item);
        piece.expect_reduced(own, offset, size, reduction);
    }
}

// Elements of rank a for rank b, for operations without a root.
std::uint64_t pair_count(std::uint64_t n, int a, int b, bool equal) {
    return equal    ? n
           : n == 0 ? static_cast<std::uint64_t>(a == b ? 0 : b)
                    : n + static_cast<std::uint64_t>(3 * a + b);
}

void movements(const Comm& comm, const Type& t, std::uint64_t n, bool in_place) {
    const int rank = comm.rank(), size = comm.size();
    constexpr int sum = CATENA_REDUCE_SUM;
    for (int root = 0; root < size; ++root) {
        Data data(t, n);
        if (rank == root) data.fill(0, n, 0, root, sum);
        comm.run({.kind = CATENA_OP_BCAST,
                  .peer = root,
                  .dtype = t.dtype,
                  .send = rank == root ? data.at(0) : nullptr,
                  .recv = rank == root && !in_place ? nullptr : data.at(0),
                  .count = n});
        data.expect_elements(0, n, 0, root);
    }
    for (const bool equal : {true, false}) {
        const auto count = [&](int a, int b) { return pair_count(n, a, b, equal); };
        // the pieces of all ranks for one rank
        std::vector<std::uint64_t> counts, offsets{0};
        for (int r = 0; r < size; ++r) {
            counts.push_back(count(r, 0));
            offsets.push_back(offsets.back() + counts.back());
        }
        const std::uint64_t own = counts[static_cast<std::size_t>(rank)];
        const std::uint64_t offset = offsets[static_cast<std::size_t>(rank)];
        const auto* const given = equal ? nullptr : &counts;
        for (int root = -1; root < size; ++root) {  // -1: allgather
            Data all(t, offsets.back()), piece(t, own);
            std::byte* const from =
                in_place && (root < 0 || root == rank) ? all.at(offset) : piece.at(0);
            piece.fill(0, own, 0, rank, sum);
            std::memmove(from, piece.at(0), own * piece.item);
            const bool gets = root < 0 || root == rank;
            comm.run({.kind = root < 0 ? CATENA_OP_ALLGATHER : CATENA_OP_GATHER,
                      .peer = std::max(root, 0),
                      .dtype = t.dtype,
                      .send = from,
                      .recv = gets ? all.at(0) : nullptr,
                      .count = own,
                      .recv_counts = gets ? given : nullptr});
            for (int r = 0; gets && r < size; ++r)
                all.expect_elements(offsets[static_cast<std::size_t>(r)],
                                    counts[static_cast<std::size_t>(r)], 0, r);
            if (root < 0) continue;
            // and back
            Data back(t, own);
            std::byte* const into = from == piece.at(0) ? back.at(0) : from;
            comm.run({.kind = CATENA_OP_SCATTER,
                      .peer = root,
                      .dtype = t.dtype,
                      .send = gets ? all.at(0) : nullptr,
                      .recv = into,
                      .count = own,
                      .send_counts = gets ? given : nullptr});
            std::memmove(back.at(0), into, own * back.item);
            back.expect_elements(0, own, 0, rank);
        }
        std::vector<std::uint64_t> sends, recvs;
        std::uint64_t sent = 0, received = 0;
        for (int r = 0; r < size; ++r) {
            sent += sends.emplace_back(count(rank, r));
            received += recvs.emplace_back(count(r, rank));
        }
        Data out(t, std::max(sent, received)), in(t, received);
        std::uint64_t first = 0;
        for (int r = 0; r < size; ++r) {
            const std::uint64_t m = sends[static_cast<std::size_t>(r)];
            out.fill(first, m, static_cast<std::uint64_t>(r), rank, sum);
            first += m;
        }
        Data& into = in_place ? out : in;
        comm.run({.kind = CATENA_OP_ALLTOALL,
                  .dtype = t.dtype,
                  .send = out.at(0),
                  .recv = into.at(0),
                  .count = equal ? n : 0,  // unused with counts
                  .send_counts = equal ? nullptr : &sends,
                  .recv_counts = equal ? nullptr : &recvs});
        first = 0;
        for (int r = 0; r < size; ++r) {
            const std::uint64_t m = recvs[static_cast<std::size_t>(r)];
            into.expect_elements(first, m, static_cast<std::uint64_t>(rank), r);
            first += m;
        }
    }
    // around the ring
    Data out(t, n), in(t, n);
    out.fill(0, n, 0, rank, sum);
    if (size == 1) return;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const Work work = comm.start({.kind = CATENA_OP_SEND,
                                  .peer = right,
                                  .tag = 7,
                                  .dtype = t.dtype,
                                  .send = out.at(0),
                                  .count = n});
    comm.run({.kind = CATENA_OP_RECV,
              .peer = left,
              .tag = 7,
              .dtype = t.dtype,
              .recv = in.at(0),
              .count = n});
    work.wait();
    in.expect_elements(0, n, 0, left);
}

}  // namespace

void test_operations(const Comm& comm) {
    for (const Type& t : types)
        for (const bool in_place : {false, true}) {
            const bool common = t.dtype.code == CATENA_CODE_FLOAT && t.dtype.bits == 32;
            // 8 KB are carried by the agreement, then there are segments of 256 KB
            std::vector<std::uint64_t> counts = {0, 1, 7, 5001};
            if (common) counts.insert(counts.end(), {2048, 2049, 65'536, 400'003});
            for (const std::uint64_t n : counts) {
                const bool floats =
                    t.dtype.code == CATENA_CODE_FLOAT || t.dtype.code == CATENA_CODE_BFLOAT;
                const bool is_bool = t.dtype.code == CATENA_CODE_BOOL;
                for (int reduction = CATENA_REDUCE_SUM; reduction <= CATENA_REDUCE_PROD;
                     ++reduction) {
                    const bool orders =
                        reduction == CATENA_REDUCE_MIN || reduction == CATENA_REDUCE_MAX;
                    if ((is_bool && !orders) || (!floats && reduction == CATENA_REDUCE_MEAN))
                        continue;
                    if (n > 5001 && reduction != CATENA_REDUCE_MEAN) continue;
                    reductions(comm, t, reduction, n, in_place);
                }
                movements(comm, t, n, in_place);
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

// What a rank refuses alone; nothing is started, so the group goes on.
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
