// Failures of the communicator "nccl" with the emulated NCCL, and how ranks find their group.
#include <chrono>
#include <latch>
#include <mutex>
#include <optional>

#include "declarations.hpp"
#include "emulator/control.h"
#include "ranks.hpp"

using namespace nccl_test;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Each rank runs its operation; returns the texts of the failures. Checks that later calls fail too.
std::vector<std::string> failures(int n, const std::function<void(Rank&, catena_operation&)>& make,
                                  double timeout = 600) {
    std::vector<std::string> texts(static_cast<std::size_t>(n));
    with_ranks(
        n,
        [&](Rank& rank) {
            catena_operation o =
                rank.operation(CATENA_OP_ALLREDUCE, rank.put(Values(16, 1)), rank.room(64), 8);
            make(rank, o);
            const std::string text = rank.run(o);
            CHECK(rank.status == CATENA_E_DEVICE);
            CHECK(rank.run(o) == text);
            catena_comm* none = nullptr;
            CHECK(table().split(ctx, rank.comm, 0, 0, &none) == CATENA_E_DEVICE);
            CHECK(failure == text);
            CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
            texts[static_cast<std::size_t>(rank.info.rank)] = text;
        },
        timeout);
    return texts;
}

}  // namespace

TEST_CASE("ranks whose operations differ all fail, and are told of the difference") {
    struct Case {
        std::function<void(Rank&, catena_operation&)> second;  // how the second rank's differs
        const char* got;
    };
    const Case cases[] = {
        {[](Rank&, catena_operation& o) { o.kind = CATENA_OP_BCAST; },
         "bcast of float32 x 8 from rank 0"},
        {[](Rank&, catena_operation& o) { o.reduction = CATENA_REDUCE_MAX; },
         "allreduce max of float32 x 8"},
        {[](Rank&, catena_operation& o) { o.dtype = i32; }, "allreduce sum of int32 x 8"},
        {[](Rank&, catena_operation& o) { o.count = 4; }, "allreduce sum of float32 x 4"},
    };
    for (const int n : {2, 3})
        for (const Case& c : cases)
            for (const int other : {1, n - 1}) {
                const auto texts = failures(n, [&](Rank& rank, catena_operation& o) {
                    if (rank.info.rank == other) c.second(rank, o);
                });
                for (const std::string& text : texts)
                    CHECK(text ==
                          "rank " + std::to_string(other) +
                              ": [allreduce] w: expected allreduce sum of float32 x 8, got " +
                              c.got);
            }
    // the majority differs from rank 0
    const auto texts = failures(3, [&](Rank& rank, catena_operation& o) {
        if (rank.info.rank == 0) o.count = 4;
    });
    for (const std::string& text : texts)
        CHECK(text ==
              "rank 0: [allreduce] w: expected allreduce sum of float32 x 8, got allreduce sum of "
              "float32 x 4");
}

TEST_CASE("ranks whose roots, counts of pieces, tags or sizes of messages differ all fail") {
    const auto with_kind = [&](int kind,
                               const std::function<void(Rank&, catena_operation&)>& more) {
        return failures(2, [&](Rank& rank, catena_operation& o) {
            o.kind = kind;
            more(rank, o);
        });
    };
    auto texts = with_kind(CATENA_OP_REDUCE,
                           [](Rank& rank, catena_operation& o) { o.peer = rank.info.rank; });
    CHECK(contains(texts[0], "to rank 0, got reduce sum of float32 x 8 to rank 1"));
    texts = with_kind(CATENA_OP_GATHER, [](Rank& rank, catena_operation& o) {
        if (rank.info.rank == 1) o.count = 3;
    });
    CHECK(texts[0] == "rank 0: [gather] w: expected 8 elements from rank 1, got 3");
    CHECK(texts[1] == "rank 0: aborted: " + texts[0]);
    const auto pair = [](Rank& rank, catena_operation& o) {
        o.kind = rank.info.rank == 0 ? CATENA_OP_SEND : CATENA_OP_RECV;
        o.peer = 1 - rank.info.rank;
    };
    texts = failures(2, [&](Rank& rank, catena_operation& o) {
        pair(rank, o);
        o.tag = 5 + rank.info.rank;
    });
    CHECK(texts[1] ==
          "rank 1: [recv] w: expected 'float32 x 8 with tag 6 from rank 0 to rank 1', got "
          "'float32 x 8 with tag 5 from rank 0 to rank 1' on rank 0");
    texts = failures(2, [&](Rank& rank, catena_operation& o) {
        pair(rank, o);
        if (rank.info.rank == 0) o.count = 2;
    });
    CHECK(contains(texts[1], "got 'float32 x 2 with tag 0"));
    CHECK(texts[0] == "rank 1: aborted: " + texts[1]);
}

TEST_CASE("a rank that starts nothing is named after the timeout, and its streams are freed") {
    std::mutex mutex;
    std::vector<std::string> texts;
    std::latch begun(1), failed(2);
    with_ranks(3, [&](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        CHECK(rank.run(o) == "");
        if (rank.info.rank == 1) {
            failed.wait();
            catena_comm* none = nullptr;
            rank.text = table().split(ctx, rank.comm, 0, 0, &none) == CATENA_OK ? "split" : failure;
        } else {
            o.label = "l1/W";
            if (rank.info.rank == 0) {  // it begins last, so that only rank 1 can be late
                o.timeout = 0.3;
                begun.wait();
            }
            catena_work* const work = rank.start(o);
            if (rank.info.rank == 2) begun.count_down();
            if (work == nullptr) return;
            rank.wait_on(work);
            if (rank.info.rank == 2) CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
            rank.finish(work);
            CHECK(rank.status == CATENA_E_DEVICE);
            failed.count_down();
        }
        const std::lock_guard lock(mutex);
        texts.push_back(rank.text);
    });
    REQUIRE(texts.size() == 3);
    for (const std::string& text : texts) {
        CHECK(text == texts[0]);
        CHECK(contains(text, "allreduce sum of float32 x 8 l1/W: expected "));
        CHECK(contains(text,
                       "within 0.3 seconds, got no start by rank 1, whose last was alltoall of "
                       "uint8 (allreduce sum of float32 x 8 w)"));
    }
}

TEST_CASE("a message that nobody receives, and a stream that does not go on, end by the timeout") {
    const auto texts = failures(
        2,
        [](Rank& rank, catena_operation& o) {
            if (rank.info.rank == 0) o.kind = CATENA_OP_SEND;
            else o.peer = 0, o.kind = CATENA_OP_BARRIER;
            if (rank.info.rank == 0) o.peer = 1;
        },
        2.5);
    CHECK((contains(texts[0], "within 2.5 seconds, got no start by rank 0") ||
           contains(texts[0], "within 2.5 seconds, got none from rank 1")));
    with_ranks(1, [](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        Gate gate(rank.stream);
        catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        o.timeout = 0.1;
        CHECK(contains(rank.run(o), "rank 0: [allreduce] w: expected its end within 0.1 seconds"));
    });
}

TEST_CASE("abort reaches all ranks with its reason; only the first counts") {
    std::mutex mutex;
    std::vector<std::string> texts;
    with_ranks(3, [&](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        const std::string first = rank.run(rank.operation(CATENA_OP_ALLREDUCE, data, data, 8));
        CHECK((first == "" || first == "rank 2: aborted: loss is NaN"));  // it may still run there
        if (rank.info.rank == 2) {
            table().abort(rank.comm, "loss is NaN");
            table().abort(rank.comm, "another reason");
        }
        rank.run(rank.operation(CATENA_OP_ALLREDUCE, data, data, 8));
        CHECK(rank.status == CATENA_E_DEVICE);
        const std::lock_guard lock(mutex);
        texts.push_back(rank.text);
    });
    for (const std::string& text : texts) CHECK(text == "rank 2: aborted: loss is NaN");
}

TEST_CASE("abort reaches ranks that wait for their device alone") {
    std::latch started(3);
    with_ranks(3, [&](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        std::optional<Gate> gate;
        if (rank.info.rank == 1) gate.emplace(rank.stream);
        catena_work* const work = rank.start(rank.operation(CATENA_OP_ALLREDUCE, data, data, 8));
        rank.wait_on(work);
        started.arrive_and_wait();
        if (rank.info.rank == 1) {
            table().abort(rank.comm, "loss is NaN");
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            gate.reset();
        }
        CHECK(rank.finish(work) == "rank 1: aborted: loss is NaN");
        CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
    });
}

TEST_CASE("a rank that has closed its group is named") {
    with_ranks(2, [](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        CHECK(rank.run(o) == "");
        if (rank.info.rank == 1) return;
        CHECK(contains(rank.run(o),
                       "got close() by rank 1, whose last was alltoall of uint8 "
                       "(allreduce sum of float32 x 8 w)"));
    });
    with_ranks(2, [](Rank& rank) {
        if (rank.info.rank == 0) return;
        char* const data = rank.put(Values(8, 1));
        std::string text;
        catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        o.timeout = 60;
        text = rank.run(o);
        CHECK_MESSAGE(contains(text, "got close() by rank 0"), text);
        CHECK(rank.run(o) == text);
    });
}

TEST_CASE("what a rank refuses alone does not make its group fail") {
    with_ranks(2, [](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        const catena_operation good = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        catena_operation o = good;
        o.device_type = 1;
        rank.run(o);
        CHECK(rank.status == CATENA_E_INVALID);
        CHECK(rank.text == "[allreduce] memory: expected cuda:" + std::to_string(rank.device) +
                               ", got device " + std::to_string(rank.device) +
                               " of DLPack's type 1");
        o = good;
        o.dtype = i16;
        rank.run(o);
        CHECK(rank.status == CATENA_E_DTYPE);
        CHECK(contains(rank.text, "[allreduce] dtype: expected bool, int or uint of 8, 32 or 64"));
        o = good;
        o.kind = CATENA_OP_SEND;
        o.peer = rank.info.rank;
        rank.run(o);
        CHECK(rank.status == CATENA_E_INVALID);
        CHECK(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
        rank.run(good);
        CHECK(rank.status == CATENA_E_UNSUPPORTED);
        CHECK(contains(rank.text, "[allreduce] stream: expected one that is not being recorded"));
        cudaGraph_t graph = nullptr;
        CHECK(cudaStreamEndCapture(rank.stream, &graph) == cudaSuccess);
        CHECK(cudaGraphDestroy(graph) == cudaSuccess);
        CHECK(rank.run(good) == "");
        CHECK(rank.get(data, 1)[0] == 2);
    });
}

TEST_CASE("open: a rank that is missing, twice there, or of another size") {
    const auto opened = [](const std::vector<std::pair<int, int>>& ranks, double timeout) {
        const std::string address = new_address();
        std::vector<std::string> texts(ranks.size());
        in_threads(static_cast<int>(ranks.size()), [&](int i) {
            const auto at = static_cast<std::size_t>(i);
            Rank rank(ranks[at].first, ranks[at].second, address, timeout);
            CHECK(rank.status != CATENA_OK);
            texts[at] = rank.text;
        });
        return texts;
    };
    const auto texts = opened({{0, 3}, {2, 3}}, 0.4);
    // the second one to give up also misses the first
    const std::string missing = "expected 3 ranks within 0.4 seconds, got none of rank ";
    CHECK((texts[0].ends_with(missing + "1") || texts[1].ends_with(missing + "1")));
    for (const std::string& text : texts) CHECK(contains(text, missing));
    opened({{0, 3}, {1, 3}, {1, 3}}, 0.4);
    opened({{0, 3}, {1, 2}}, 0.4);
}

TEST_CASE("open: without an address the ranks are processes, which need the communicator mpi") {
    const auto open = [](int rank, int size, const char* address = nullptr) {
        catena_comm_options options = {sizeof options, rank, size, 0, address, 1};
        catena_comm* comm = nullptr;
        const catena_status status = table().open(ctx, &options, &comm);
        const int got = comm == nullptr ? 0 : Rank::info_of(comm).size;
        if (comm != nullptr) table().close(comm);
        if (got == 0) {
            CHECK(status == CATENA_E_UNSUPPORTED);
            CHECK(failure ==
                  "[open] nccl: expected the communicator mpi for its control messages, got none");
        }
        return got;
    };
    CHECK(open(-1, 0) == 1);  // no launcher
    CHECK(open(0, 1) == 1);
    CHECK(open(0, 2) == 0);
    CHECK(open(-1, 2, "name") == 0);
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"}) {
        setenv(name, "1", 1);
        CHECK(open(-1, 0) == 1);
        setenv(name, "2", 1);
        CHECK(open(-1, 0) == 0);
        unsetenv(name);
    }
}

// In a process of its own, whose CATENA_NCCL names no NCCL.
TEST_CASE("no library" * doctest::skip()) {
    catena_comm_options options = {sizeof options, 0, 1, 0, nullptr, 1};
    catena_comm* comm = nullptr;
    CHECK(table().open(ctx, &options, &comm) == CATENA_E_UNSUPPORTED);
    CHECK(contains(failure,
                   "[nccl] library: expected libnccl.so.2 of 2.18.5 or newer (a path in "
                   "CATENA_NCCL goes first), got: "));
    const bool missing = contains(std::getenv("CATENA_NCCL"), "/none");
    CHECK(contains(failure, missing ? "/none/nccl" : "a library without ncclGetVersion"));
}

TEST_CASE("open: a device that is not there") {
    catena_comm_options options = {sizeof options, 0, 1, 99, nullptr, 1};
    catena_comm* comm = nullptr;
    CHECK(table().open(ctx, &options, &comm) == CATENA_E_INVALID);
    CHECK(contains(failure, "[open] device_id: expected 0 to"));
}

TEST_CASE("nothing is left when groups are closed, after success and after failures") {
    const auto once = [](bool fails) {
        with_ranks(2, [&](Rank& rank) {
            char* const data = rank.put(Values(9, 1));
            catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
            if (fails && rank.info.rank == 1) o.count = 7;
            rank.run(o);
            CHECK((rank.status == CATENA_OK) == !fails);
            o.kind = rank.info.rank == 0 ? CATENA_OP_SEND : CATENA_OP_RECV;
            o.peer = 1 - rank.info.rank;
            o.count = 8;
            rank.run(o);
            o.kind = CATENA_OP_ALLTOALL;  // in place: needs temporary memory
            o.count = 4;
            rank.run(o);
            CHECK((rank.status == CATENA_OK) == !fails);
        });
    };
    once(false);
    const long live = catena_emulator_live(0);
    for (const bool fails : {false, true, false}) once(fails);
    CHECK(catena_emulator_live(0) == live);
}
