// Tests what is special about threads.catena. catena-check tests what all communicators do.
#include <doctest/doctest.h>
#include <catena/testing.hpp>
#include <catena/testing/communicator.hpp>

#include <dlfcn.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <thread>

using namespace catena::testing;

namespace {

constexpr double patient = 1000;  // seconds

const catena_communicator& threads_table() {
    static const catena_communicator& table = []() -> const catena_communicator& {
        void* library = dlopen(THREADS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
        const auto entry = reinterpret_cast<decltype(&catena_plugin_entry_v1)>(
            dlsym(library, "catena_plugin_entry_v1"));
        const catena_plugin& plugin = *entry(&World::host(), nullptr);
        return *static_cast<const catena_communicator*>(plugin.extensions[0]->table);
    }();
    return table;
}

void run(int ranks, const std::function<void(CommRank&)>& body) {
    run_ranks(threads_table(), ranks, patient, body);
}

// Throws on the thread of a rank, where doctest's macros cannot be used.
void need(bool condition, const std::string& what) {
    if (!condition) throw Failure(CATENA_E_VALUE, what);
}
void need(const CallResult& result) { need(static_cast<bool>(result), result.text); }

struct Opened {
    CallResult result;
    catena_comm_info info = {};
};
// Opens a group and closes it at once.
Opened open(int rank, int size, const char* address, double timeout) {
    Opened opened;
    catena_comm_options options = comm_options(rank, size, "", timeout);
    options.address = address;
    const CommRank own = CommRank::open(threads_table(), options, opened.result);
    if (own) opened.info = own.info();
    return opened;
}

template <class T>
catena_operation allreduce(const std::vector<T>& send, std::vector<T>& recv) {
    return comm_operation(CATENA_OP_ALLREDUCE, dtype_of<T>(), send.data(), recv.data(),
                          send.size());
}

struct Variable {
    Variable(const char* its_name, const char* value) : name(its_name) { setenv(name, value, 1); }
    ~Variable() { unsetenv(name); }
    const char* name;
};

double seconds_of_cpu() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TEST_CASE("open") {
    SUBCASE("without rank and size: one rank") {
        const Opened opened = open(-1, 0, nullptr, 1);
        CHECK(opened.result.text == "");
        CHECK(opened.info.rank == 0);
        CHECK(opened.info.size == 1);
        CHECK(opened.info.local_size == 1);
    }
    SUBCASE("a size needs a rank") {
        const Opened opened = open(-1, 2, "", 1);
        CHECK(opened.result.status == CATENA_E_INVALID);
        CHECK(opened.result.text == "[open] rank: expected 0 to 1, got -1");
    }
    SUBCASE("missing ranks are named, and the name is free again") {
        CHECK(open(1, 4, "missing", 0.01).result.text ==
              "rank 1: [open] missing: expected 4 ranks within 0.01 seconds, got none of rank 0, "
              "rank 2, rank 3");
        CHECK(open(0, 1, "missing", 1).result.text == "");
    }
    SUBCASE("no rank twice, one size") {
        // Either may come first: then the other one is refused, and tries again.
        std::thread first([] {
            while (open(0, 2, "", patient).result.status == CATENA_E_INVALID)
                std::this_thread::yield();
        });
        CallResult again;
        do again = open(0, 2, nullptr, 0.01).result;
        while (again.status == CATENA_E_DEVICE);
        CHECK(again.text == "[open] rank of default: expected rank 1, got rank 0 again");
        CHECK(open(1, 3, nullptr, 0.01).result.text == "[open] size of default: expected 2, got 3");
        CHECK(open(1, 2, nullptr, patient).result.text == "");
        first.join();
    }
}

TEST_CASE("sums in segments of any size have the order ((0 + 1) + (2 + 3)) + 4") {
    for (const std::size_t n : {1u, 15u, 16u, 17u, 4096u, 100'003u})
        run(5, [&](CommRank& own) {
            const auto value = [](int rank, std::size_t i) {
                return 1.0f /
                       static_cast<float>(1 + (i * 31 + static_cast<std::size_t>(rank) * 7) % 97);
            };
            std::vector<float> x(n), y(n);
            for (std::size_t i = 0; i < n; ++i) x[i] = value(own.rank(), i);
            need(own.run(allreduce(x, y)));
            for (std::size_t i = 0; i < n; ++i)
                need(y[i] ==
                         ((value(0, i) + value(1, i)) + (value(2, i) + value(3, i))) + value(4, i),
                     "element " + std::to_string(i));
        });
}

TEST_CASE("messages do not wait for other operations") {
    run(2, [&](CommRank& own) {
        const float sent = 5;
        float received = 0;
        const bool sends = own.rank() == 0;
        catena_operation message =
            comm_operation(sends ? CATENA_OP_SEND : CATENA_OP_RECV, dtype_of<float>(),
                           sends ? &sent : nullptr, sends ? nullptr : &received, 1);
        message.peer = 1 - own.rank();
        catena_operation barrier = {};
        barrier.struct_size = sizeof barrier;
        StartedWork first, second;
        need(own.start(sends ? message : barrier, first));
        if (sends) need(first.wait());  // rank 1 starts the barrier before it receives
        need(own.start(sends ? barrier : message, second));
        need(second.wait());
        need(first.wait());
        need(sends || received == 5, "the message");
    });
}

TEST_CASE("failures name what the ranks did") {
    const auto text_of = [](const std::function<void(CommRank&)>& other, double timeout) {
        std::string text;
        run(2, [&](CommRank& own) {
            std::vector<float> x(3), y(3);
            catena_operation o = allreduce(x, y);
            o.label = "l1/b";
            need(own.run(o));
            if (own.rank() == 1) return other(own);
            o.label = "l1/W";
            o.timeout = timeout;
            text = own.run(o).text;
            own.abort("the end");  // without effect
            text = text == own.run(o).text ? text : "another text";
            own.close();
        });
        return text;
    };
    std::latch failed(1);
    CHECK(text_of([](CommRank&) {}, patient) ==
          "rank 1: [allreduce] l1/W: expected allreduce sum of float32 x 3, got close() by rank 1, "
          "whose last was allreduce sum of float32 x 3 (l1/b)");
    CHECK(text_of(
              [](CommRank& own) {
                  float x = 0;
                  catena_operation o =
                      comm_operation(CATENA_OP_BCAST, dtype_of<float>(), &x, nullptr, 1);
                  o.peer = 1;
                  o.label = "seed";
                  need(own.run(o).status == CATENA_E_DEVICE, "expected a failure");
                  own.close();
              },
              patient) ==
          "rank 1: [allreduce] l1/W: expected allreduce sum of float32 x 3, got bcast of float32 x "
          "1 from rank 1 (seed)");
    CHECK(
        text_of(
            [](CommRank& own) {
                bool open = true;  // until the other rank has failed
                const catena_operation nobody = [&] {
                    catena_operation o =
                        comm_operation(CATENA_OP_RECV, dtype_of<float>(), nullptr, &open, 0);
                    o.label = "nobody";
                    return o;
                }();
                need(own.run(nobody).status == CATENA_E_DEVICE, "expected a failure");
                own.close();
            },
            0.05) ==
        "rank 1: [allreduce] l1/W: expected allreduce sum of float32 x 3 within 0.05 seconds, got "
        "no start by rank 1, whose last was recv of float32 x 0 (nobody)");
}

// A rank that leaves while others read its memory waits for them; the sanitizers notice otherwise.
TEST_CASE("memory is free after close()") {
    for (int again = 0; again < 20; ++again)
        run(3, [&](CommRank& own) {
            std::vector<float> x(200'000, 1), y(200'000);
            std::vector<float> message(200'000);
            StartedWork works[2];
            const int other = 1 - own.rank();
            if (own.rank() < 2) {
                catena_operation o = comm_operation(
                    own.rank() == 0 ? CATENA_OP_SEND : CATENA_OP_RECV, dtype_of<float>(),
                    message.data(), message.data(), message.size());
                o.peer = other;
                static_cast<void>(own.start(o, works[0]));
            }
            static_cast<void>(own.start(allreduce(x, y), works[1]));
            if (own.rank() == again % 3) own.abort("enough");
            for (StartedWork& work : works) work.release();
            own.close();
        });
}

TEST_CASE("a message that ends without an error is complete") {
    for (int delay = 0; delay < 8; ++delay)
        run(3, [&](CommRank& own) {
            const bool sends = own.rank() == 0;
            std::vector<float> x(own.rank() < 2 ? 30'000'000 : 0, sends ? 1.0F : 0.0F);
            StartedWork work;
            catena_operation o = comm_operation(sends ? CATENA_OP_SEND : CATENA_OP_RECV,
                                                dtype_of<float>(), x.data(), x.data(), x.size());
            o.peer = 1 - own.rank();
            catena_operation barrier = {};
            barrier.struct_size = sizeof barrier;
            need(own.run(barrier));
            if (own.rank() < 2) static_cast<void>(own.start(o, work));
            if (own.rank() == 2) {
                std::this_thread::sleep_for(std::chrono::milliseconds(3 * delay));
                own.abort("enough");
            } else if (work && work.wait() && !sends) {
                need(x.back() == 1, "the whole message");
            }
        });
}

TEST_CASE("a simulated link") {
    SUBCASE("operations take as long as on it, one after the other") {
        const Variable rate("CATENA_THREADS_BYTES_PER_SECOND", "4e6"),
            latency("CATENA_THREADS_LATENCY", "0.01");
        const double cpu = seconds_of_cpu();
        run(2, [&](CommRank& own) {
            std::vector<float> x(100'000, 1), y(100'000), z(100'000);  // 400 kB: 0.1 s
            StartedWork works[2];
            const auto start = Clock::now();
            need(own.start(allreduce(x, y), works[0]));
            need(own.start(allreduce(x, z), works[1]));
            need(works[0].wait());
            const double first = seconds_since(start);
            need(works[1].wait());
            const double second = seconds_since(start);
            need(first >= 0.109, "first: " + std::to_string(first));
            need(second >= 0.219, "second: " + std::to_string(second));
            need(y[7] == 2 && z[99'999] == 2, "the sums");
        });
        CHECK(seconds_of_cpu() - cpu < 0.2);  // of 0.44 s on two threads
    }
    SUBCASE("abort() ends the wait") {
        const Variable latency("CATENA_THREADS_LATENCY", "1000");
        std::latch started(2);
        run(2, [&](CommRank& own) {
            std::vector<float> x(10), y(10);
            StartedWork work;
            need(own.start(allreduce(x, y), work));
            started.arrive_and_wait();
            if (own.rank() == 1) own.abort("enough");
            need(work.wait().text == "rank 1: aborted: enough", "expected a failure");
            own.close();
        });
    }
    SUBCASE("a value that is no number") {
        const Variable rate("CATENA_THREADS_BYTES_PER_SECOND", "fast");
        CHECK(open(0, 1, "", 1).result.text ==
              "[threads] CATENA_THREADS_BYTES_PER_SECOND: expected a number, 0 or more, got fast");
    }
}
