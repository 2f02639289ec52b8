// One rank of the tests of mpi.catena: loads the plugin and runs a command. Prints errors as
// "error: TEXT" and ends with status 1.
//
// usage: mpi-worker PLUGIN TIMEOUT COMMAND [ARGUMENT]
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "comm.hpp"

namespace mpi_test {
namespace {

using namespace std::chrono_literals;

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
double cpu_seconds() {
    rusage used = {};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int threads() {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

// open() with a rank or size that differs from MPI's, or with an address.
void refuses_other_places(const catena_communicator& table) {
    catena_comm_options options = {};
    options.struct_size = sizeof options;
    options.rank = -1;
    options.size = 5;
    options.timeout = 10;
    const auto refused = [&](const std::string& text) {
        catena_comm* comm = nullptr;
        EXPECT(table.open(nullptr, &options, &comm) == CATENA_E_INVALID);
        if (last_text.find(text) == std::string::npos) throw std::runtime_error(last_text);
    };
    refused("[open] size: expected 2, that of MPI_COMM_WORLD, got 5");
    options.size = 0;
    options.rank = 7;
    refused("[open] rank: expected ");
    options.rank = -1;
    options.address = "host:1";
    refused("[open] address: expected none, as mpirun knows the ranks, got host:1");
}

void die_soon() {
    std::thread([] {
        std::this_thread::sleep_for(50ms);
        std::raise(SIGKILL);
    }).detach();
}

}  // namespace

// Rank 1 does something else than the others. All ranks but an ended one must throw.
void fail_by(const Comm& comm, const std::string& scenario) {
    const bool odd = comm.rank() == 1;
    std::vector<float> x(1 << 20, 1);
    const auto run = [&](const Args& odd_args, const Args& args) {
        comm.run(odd ? odd_args : args);
    };
    Args sum = {.kind = CATENA_OP_ALLREDUCE,
                .send = x.data(),
                .recv = x.data(),
                .count = 10,
                .label = "l1/W"};
    Args other = sum;
    for (int i = 0; i < 3; ++i) comm.run({.label = "before", .timeout = 60});
    if (scenario == "count") {
        other.count = 9;
        run(other, sum);
    } else if (scenario == "large-count") {
        sum.count = x.size();
        other.count = 9;
        run(other, sum);
    } else if (scenario == "dtype") {
        other.dtype = {CATENA_CODE_INT, 32, 1};
        run(other, sum);
    } else if (scenario == "reduction") {
        other.reduction = CATENA_REDUCE_MAX;
        run(other, sum);
    } else if (scenario == "kind") {
        run({}, sum);
    } else if (scenario == "root") {
        sum.kind = other.kind = CATENA_OP_BCAST;
        other.peer = 1;
        run(other, sum);
    } else if (scenario == "gather" || scenario == "scatter" || scenario == "alltoall") {
        // rank 1 expects 5 elements more of rank 0, or sends them
        const auto n = static_cast<std::uint64_t>(comm.size());
        std::vector<std::uint64_t> counts(n, 10), wrong = counts;
        std::vector<float> send(1000), recv(1000);
        Args all = {.kind = CATENA_OP_ALLTOALL,
                    .send = send.data(),
                    .recv = recv.data(),
                    .count = 10,
                    .send_counts = &counts,
                    .recv_counts = &counts,
                    .label = "v"};
        if (scenario == "gather") all.kind = CATENA_OP_GATHER;
        if (scenario == "scatter") all.kind = CATENA_OP_SCATTER;
        Args mistaken = all;
        if (scenario == "alltoall") {
            wrong[0] = 15;
            mistaken.recv_counts = &wrong;
        } else {
            mistaken.count = 15;
        }
        run(mistaken, all);
    } else if (scenario == "recv-count" || scenario == "recv-dtype") {
        Args send = {
            .kind = CATENA_OP_SEND, .peer = 1, .send = x.data(), .count = 10, .label = "l1/W"};
        Args recv = {
            .kind = CATENA_OP_RECV, .peer = 0, .recv = x.data(), .count = 10, .label = "l1/W"};
        if (scenario == "recv-count") recv.count = 9;
        else recv.dtype = {CATENA_CODE_INT, 32, 1};
        if (comm.rank() == 0) comm.run(send);
        if (odd) comm.run(recv);
        comm.run({.label = "after"});
    } else if (scenario == "recv-timeout") {
        if (comm.rank() == 0)
            comm.run({.kind = CATENA_OP_RECV,
                      .peer = 1,
                      .recv = x.data(),
                      .count = 10,
                      .label = "l1/W"});
        comm.run({.label = "after"});
    } else if (scenario == "abort") {
        if (odd) comm.abort("disk full");
        comm.run(sum);
    } else if (scenario == "late-abort") {  // the others learn of it at their next call
        if (odd) comm.abort("disk full");
        std::this_thread::sleep_for(100ms);
        comm.run(sum);
    } else if (scenario == "kill") {
        if (odd) std::raise(SIGKILL);
        comm.run(sum);
    } else if (scenario == "kill-large") {  // while data moves
        sum.count = x.size();
        if (odd) die_soon();
        for (;;) {
            std::ranges::fill(x, 1);
            comm.run(sum);
        }
    } else if (scenario == "exit") {
        if (odd) _exit(3);
        comm.run(sum);
    } else if (scenario ==
               "stdlib-exit") {  // with the handlers of exit(), not the plugin's deinit()
        if (odd) std::exit(3);
        comm.run(sum);
    } else if (scenario == "throw") {  // std::terminate()
        if (odd) std::thread([] { throw std::runtime_error("no such file"); }).join();
        comm.run(sum);
    } else if (scenario == "abort-exit") {
        if (odd) {
            comm.abort("disk full");
            std::exit(1);
        }
        comm.run(sum);
    } else if (scenario == "leave") {  // closes the group and ends as usual
        if (odd) throw std::runtime_error("no such file");
        comm.run(sum);
    } else if (scenario == "leave-in-part") {  // closes a group while its operation runs
        sum.count = x.size();
        Comm part = comm.split(0, comm.rank());
        if (odd) {
            static_cast<void>(part.start(sum));
            const Comm closed = std::move(part);
        }
        std::this_thread::sleep_for(odd ? 500ms : 200ms);
        for (const float each : x) EXPECT(each == 1);  // no longer used
        if (odd) throw std::runtime_error("no such file");
        part.run(sum);
    } else if (scenario == "hang-in-part") {
        // the others end, while rank 1 does not close its groups
        const Comm part = comm.split(0, comm.rank());
        if (odd) std::this_thread::sleep_for(1000s);
        part.run(sum);
    } else if (scenario == "kill-in-part") {
        // while data moves; later calls of the whole group fail too
        sum.count = x.size();
        if (odd) die_soon();
        try {
            const Comm part = comm.split(0, comm.rank());
            for (;;) {
                std::ranges::fill(x, 1);
                part.run(sum);
            }
        } catch (const Error&) {
            const std::string text = last_text;
            bool failed = false;
            try {
                comm.run({.label = "later"});
            } catch (const Error&) {
                failed = true;
            }
            EXPECT(failed);
            throw Error(CATENA_E_DEVICE, text);
        }
    } else if (scenario == "stop") {
        if (odd) std::raise(SIGSTOP);
        comm.run(sum);
    } else if (scenario == "hang") {  // computes for long
        if (odd) std::this_thread::sleep_for(1000s);
        comm.run(sum);
    } else if (scenario == "short-timeout") {  // the operation's, shorter than the group's
        if (odd) std::this_thread::sleep_for(1000s);
        // Rank 0, whose time is short, begins last: then only rank 1 can be late.
        Args begun = {.kind = CATENA_OP_SEND, .send = x.data(), .count = 1};
        if (comm.rank() == 0) {
            sum.timeout = 0.3;
            begun.kind = CATENA_OP_RECV;
            begun.recv = x.data() + sum.count;
            for (begun.peer = 2; begun.peer < comm.size(); ++begun.peer) comm.run(begun);
            comm.run(sum);
        } else {
            const Work work = comm.start(sum);
            comm.run(begun);
            work.wait();
        }
    } else if (scenario == "split") {
        if (odd) comm.run(sum);
        else static_cast<void>(comm.split(0, 0));
    } else {
        throw std::runtime_error("no scenario " + scenario);
    }
    EXPECT(!"expected a failure");
}

// Seconds of one allreduce in place, and of the processor while another rank computes.
void measure(const Comm& comm) {
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{25'000},
                                      std::uint64_t{250'000}, std::uint64_t{25'000'000}}) {
        std::vector<float> x(count, 0);
        const int rounds = count > 1'000'000 ? 10 : count > 1000 ? 200 : 5000;
        double best = 1e9;
        std::vector<double> all;
        for (int i = 0; i < rounds; ++i) {
            const double begin = seconds();
            comm.run(
                {.kind = CATENA_OP_ALLREDUCE, .send = x.data(), .recv = x.data(), .count = count});
            all.push_back(seconds() - begin);
            best = std::min(best, all.back());
        }
        std::ranges::sort(all);
        if (comm.rank() == 0)
            std::printf("%llu floats: best %.1f us, p50 %.1f us\n",
                        static_cast<unsigned long long>(count), best * 1e6,
                        all[all.size() / 2] * 1e6);
    }
    // rank 0 starts an operation that rank 1 joins a second later: the cost of the thread
    comm.run({});
    if (comm.rank() == 1) std::this_thread::sleep_for(1s);
    const double cpu = cpu_seconds();
    const Work work = comm.start({});
    if (comm.rank() == 0) std::this_thread::sleep_for(1s);
    const double thread = cpu_seconds() - cpu;
    work.wait();
    comm.run({});
    if (comm.rank() == 1) std::this_thread::sleep_for(1s);
    const double before = cpu_seconds();
    comm.run({});
    const double waiting = cpu_seconds() - before;
    const double idle_begin = cpu_seconds();
    std::this_thread::sleep_for(1s);
    if (comm.rank() == 0)
        std::printf("processor: %.1f%% with a pending operation, %.1f%% in wait(), %.1f%% idle\n",
                    thread * 100, waiting * 100, (cpu_seconds() - idle_begin) * 100);
}

}  // namespace mpi_test

int main(int argc, char** argv) {
    using namespace mpi_test;
    if (argc < 4) return 2;
    const std::string command = argv[3];
    int status = 0;
    const catena_plugin* plugin = nullptr;
    try {
        plugin = &load(argv[1]);
        const auto& table = *static_cast<const catena_communicator*>(plugin->extensions[0]->table);
        int initialised = 0;
        if (command == "load") {
            MPI_Initialized(&initialised);
            std::printf("threads %d, mpi %d\n", threads(), initialised);
            plugin->deinit();
            return 0;
        }
        if (command == "own-mpi") {
            int provided = 0;
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
        }
        if (command == "wrong-size") refuses_other_places(table);
        const Comm comm(table, std::atof(argv[2]));
        if (command == "operations") test_operations(comm);
        else if (command == "bits") test_bits(comm);
        else if (command == "many") test_many(comm);
        else if (command == "groups") test_groups(comm);
        else if (command == "refusals") test_refusals(comm);
        else if (command == "measure") measure(comm);
        else if (command == "own-mpi") test_many(comm);
        else if (command == "wrong-size") comm.run({});
        else if (command == "fail") {
            try {
                fail_by(comm, argv[4]);
            } catch (const Error& first) {
                if (std::string_view(argv[4]).ends_with("in-part")) throw;
                // each later call fails at once, with the same text
                try {
                    comm.run({.label = "later", .timeout = 1e6});
                    EXPECT(!"expected a second failure");
                } catch (const Error& second) {
                    EXPECT(std::strcmp(first.what(), second.what()) == 0);
                    EXPECT(second.status == CATENA_E_DEVICE && first.status == CATENA_E_DEVICE);
                }
                throw;
            }
        } else throw std::runtime_error("no command " + command);
        std::printf("rank %d of %d: passed\n", comm.rank(), comm.size());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        status = 1;
    }
    if (plugin != nullptr) plugin->deinit();
    int finalised = 0;
    MPI_Finalized(&finalised);
    if (command == "own-mpi" && !finalised) MPI_Finalize();
    else if (status == 0 && finalised != 1) status = 3;
    return status;
}
