// Failures of the communicator "nccl" with the emulated NCCL, and how ranks find their group.
#include <chrono>
#include <mutex>

#include "declarations.hpp"
#include "emulator/control.h"
#include "ranks.hpp"
#include "socket.hpp"

using namespace nccl_test;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Each rank runs its operation; returns the texts of the failures. Checks that later calls fail too.
std::vector<std::string> failures(int n, const std::function<void(Rank&, catena_operation&)>& make,
                                  double timeout = 20) {
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

std::string env(const char* name, const char* value) {
    const char* const old = std::getenv(name);
    const std::string before = old == nullptr ? "" : old;
    if (value == nullptr) unsetenv(name);
    else setenv(name, value, 1);
    return before;
}

}  // namespace

TEST_CASE("ranks whose operations differ all fail, and are told of the difference") {
    struct Case {
        std::function<void(Rank&, catena_operation&)> second;  // how the second rank's differs
        const char *expected, *got;
    };
    const Case cases[] = {
        {[](Rank&, catena_operation& o) { o.kind = CATENA_OP_BCAST; },
         "'allreduce sum of float32 x 8'", "'bcast of float32 x 8 from rank 0' on rank 1"},
        {[](Rank&, catena_operation& o) { o.reduction = CATENA_REDUCE_MAX; },
         "'allreduce sum of float32 x 8'", "'allreduce max of float32 x 8' on rank 1"},
        {[](Rank&, catena_operation& o) { o.dtype = i32; }, "'allreduce sum of float32 x 8'",
         "'allreduce sum of int32 x 8' on rank 1"},
        {[](Rank&, catena_operation& o) { o.count = 4; }, "'allreduce sum of float32 x 8'",
         "'allreduce sum of float32 x 4' on rank 1"},
    };
    for (const int n : {2, 3})
        for (const Case& c : cases) {
            const auto texts = failures(n, [&](Rank& rank, catena_operation& o) {
                if (rank.info.rank == 1) c.second(rank, o);
            });
            const std::string first = std::string(": expected ") + c.expected + ", got " + c.got;
            CHECK(texts[0] == "rank 0: [allreduce] w" + first);
            if (n == 3) CHECK(texts[2] == "rank 2: [allreduce] w" + first);
            CHECK(contains(texts[1], "rank 1: ["));
            CHECK(contains(texts[1], std::string("got ") + c.expected + " on rank 0"));
        }
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
    CHECK(contains(texts[0], "to rank 0', got 'reduce sum of float32 x 8 to rank 1' on rank 1"));
    texts = with_kind(CATENA_OP_GATHER, [](Rank& rank, catena_operation& o) {
        if (rank.info.rank == 1) o.count = 3;
    });
    CHECK(texts[0] == "rank 0: [gather] w: expected 8 elements from rank 1 for rank 0, got 3");
    CHECK(texts[1] == "rank 1: [gather] w: expected 8 elements from rank 1 for rank 0, got 3");
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
    CHECK(contains(texts[0], "expected 'float32 x 2 with tag 0"));
}

TEST_CASE("a rank that starts nothing is named after the timeout, and its streams are freed") {
    std::mutex mutex;
    std::vector<std::string> texts;
    with_ranks(3, [&](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        CHECK(rank.run(o) == "");
        const auto begin = std::chrono::steady_clock::now();
        if (rank.info.rank == 1) {
            while (rank.text.empty()) {  // told without a call of its own that waits
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                catena_comm* none = nullptr;
                if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(1))
                    rank.text =
                        table().split(ctx, rank.comm, 0, 0, &none) == CATENA_OK ? "split" : failure;
            }
        } else {
            o.timeout = 0.3;
            o.label = "l1/W";
            catena_work* const work = rank.start(o);
            if (work == nullptr) return;
            rank.wait_on(work);
            if (rank.info.rank == 2) CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
            rank.finish(work);
            CHECK(rank.status == CATENA_E_DEVICE);
        }
        const std::lock_guard lock(mutex);
        texts.push_back(rank.text);
    });
    REQUIRE(texts.size() == 3);
    for (const std::string& text : texts) {
        CHECK(text == texts[0]);
        CHECK(contains(text,
                       ": [allreduce] l1/W: expected rank 1 to start it within 0.3 seconds, got "
                       "'allreduce sum of float32 x 8' as its last operation"));
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
        0.3);
    CHECK((contains(texts[0], "expected rank 1 to start it within 0.3 seconds, got") ||
           contains(texts[0], "expected rank 0 to start it within 0.3 seconds, got")));
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

TEST_CASE("a rank that has closed its group is named") {
    with_ranks(2, [](Rank& rank) {
        char* const data = rank.put(Values(8, 1));
        catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        CHECK(rank.run(o) == "");
        if (rank.info.rank == 1) return;
        CHECK(rank.run(o) ==
              "rank 0: [allreduce] w: expected rank 1, got the end of its membership");
    });
    with_ranks(2, [](Rank& rank) {
        if (rank.info.rank == 0) return;
        char* const data = rank.put(Values(8, 1));
        std::string text;
        // the farewell of rank 0 may arrive later
        catena_operation o = rank.operation(CATENA_OP_ALLREDUCE, data, data, 8);
        o.timeout = 0.5;
        text = rank.run(o);
        CHECK(contains(text, "rank 1: [allreduce] w: expected "));
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
    auto texts = opened({{0, 3}, {2, 3}}, 0.4);
    CHECK(contains(texts[0], "rank 0: [open] ranks: expected rank 1 within 0.4 seconds, got no"));
    CHECK(contains(texts[1], "rank 0: [open] ranks: expected rank 1 within 0.4 seconds, got no"));
    texts = opened({{1, 2}}, 0.2);
    CHECK(contains(texts[0], "rank 1: [open] ranks: expected rank 0 at 127.0.0.1:"));
    texts = opened({{0, 3}, {1, 3}, {1, 3}}, 5);
    CHECK(contains(texts[0], "expected one rank 0 to 2 each, got another rank 1 of 3"));
    texts = opened({{0, 3}, {1, 2}}, 5);
    CHECK(contains(texts[1], "expected one rank 0 to 2 each, got another rank 1 of 2"));
    for (const char* address : {"", "host", "host:", ":1", "127.0.0.1:no"}) {
        Rank rank(0, 2, address, 0.2);
        CHECK(rank.status == CATENA_E_INVALID);
        CHECK(contains(rank.text, "[open] address: expected host:port"));
    }
}

TEST_CASE("a rank whose process ends makes the others fail; a stranger at the port does not") {
    using namespace catena_nccl;
    const std::string address = new_address();
    in_threads(2, [&](int r) {
        if (r == 0) {
            Rank rank(0, 2, address);
            CHECK(rank.status == CATENA_E_DEVICE);
            CHECK(rank.text == "rank 0: [group]: expected rank 1, got the end of its process");
            return;
        }
        const auto connected = [&] {
            std::string why;
            Socket socket;
            while (!socket) socket = connect_to(address, why);
            return socket;
        };
        const Socket silent = connected();
        CHECK(send(silent.fd(), "G", 1, MSG_NOSIGNAL) == 1);
        const Socket stranger = connected();
        const std::string request = "GET / HTTP/1.1\r\n\r\n";
        CHECK(send(stranger.fd(), request.data(), request.size(), MSG_NOSIGNAL) > 0);
        const Socket socket = connected();
        CHECK(socket.write({.kind = Kind::hello, .a = 1, .b = 2, .text = "another machine"}));
        Message welcome;
        CHECK(socket.read(welcome));
        CHECK(welcome.kind == Kind::welcome);
        CHECK(welcome.a == 0);
        CHECK(welcome.b == 1);
        CHECK(welcome.text.size() == sizeof(ncclUniqueId));
    });
}

TEST_CASE("open: the rank, the size and the address come from the launcher") {
    struct Launcher {
        const char *rank, *size;
    };
    const auto open = [](int rank, int size, std::string& text) {
        catena_comm_options options = {sizeof options, rank, size, 0, nullptr, 0.1};
        catena_comm* comm = nullptr;
        const catena_status status = table().open(ctx, &options, &comm);
        text = status == CATENA_OK ? "" : failure;
        const int got = comm == nullptr ? 0 : Rank::info_of(comm).size;
        if (comm != nullptr) table().close(comm);
        return got;
    };
    std::string text;
    CHECK(open(-1, 0, text) == 1);  // no launcher
    CHECK(open(-1, 2, text) == 0);
    CHECK(
        contains(text, "[open] rank: expected 0 to 1, in the options or from a launcher, got -1"));
    for (const Launcher& l : {Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                              {"PMI_RANK", "PMI_SIZE"},
                              {"SLURM_PROCID", "SLURM_NTASKS"},
                              {"RANK", "WORLD_SIZE"}}) {
        env(l.rank, "0");
        env(l.size, "1");
        CHECK(open(-1, 0, text) == 1);
        env(l.rank, "1");
        env(l.size, "2");
        CHECK(open(-1, 0, text) == 0);
        CHECK(contains(text, "[open] address: expected host:port of rank 0, in the options"));
        env("MASTER_ADDR", "127.0.0.1");
        env("MASTER_PORT", "1");
        CHECK(open(-1, 0, text) == 0);
        CHECK(contains(text, "rank 1: [open] ranks: expected rank 0 at 127.0.0.1:1"));
        env("NCCL_COMM_ID", "127.0.0.1:2");
        CHECK(open(-1, 0, text) == 0);
        CHECK(contains(text, "expected rank 0 at 127.0.0.1:2"));
        env(l.size, "many");
        CHECK(open(-1, 0, text) == 0);
        CHECK(contains(text, l.size));
        CHECK(contains(text, "expected a number of ranks, got 'many'"));
        for (const char* name : {l.rank, l.size, "MASTER_ADDR", "MASTER_PORT", "NCCL_COMM_ID"})
            env(name, nullptr);
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
