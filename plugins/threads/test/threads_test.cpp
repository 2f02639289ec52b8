// Tests what is special about threads.catena; catena-check tests what all communicators do.
#include <doctest/doctest.h>
#include <catena/testing.hpp>
#include <catena/testing/communicator.hpp>

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace catena::testing;

namespace {

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

constexpr catena_dtype float32 = catena::plugin::dtype_of<float>();

catena_operation allreduce(const std::vector<float>& send, std::vector<float>& recv) {
    return comm_operation(CATENA_OP_ALLREDUCE, float32, send.data(), recv.data(), send.size());
}

}  // namespace

TEST_CASE("sums of any size") {
    for (const int ranks : {1, 2, 3, 5, 8})
        for (const std::size_t n : {1u, 17u, 1000u, 100003u})
            run_ranks(threads_table(), ranks, 20, [&](CommRank& own) {
                std::vector<float> x(n), y(n);
                for (std::size_t i = 0; i < n; ++i)
                    x[i] = static_cast<float>(i % 100) + static_cast<float>(own.rank());
                for (int again = 0; again < 20; ++again) {
                    const CallResult result = own.run(allreduce(x, y));
                    if (!result) throw Failure(result.status, result.text);
                    for (std::size_t i = 0; i < n; ++i) {
                        const float want = static_cast<float>(i % 100) * static_cast<float>(ranks) +
                                           static_cast<float>(ranks * (ranks - 1) / 2);
                        if (y[i] != want) throw Failure(CATENA_E_VALUE, "wrong sum");
                        y[i] = 0;
                    }
                }
            });
}

TEST_CASE("speed" * doctest::skip()) {
    for (const std::size_t n : {1u, 1000u, 25'000'000u})
        run_ranks(threads_table(), 2, 20, [&](CommRank& own) {
            std::vector<float> x(n), y(n);
            const int times = n > 10000 ? 10 : 100000;
            for (int again = 0; again < times / 10; ++again) own.run(allreduce(x, y));
            const auto start = std::chrono::steady_clock::now();
            for (int again = 0; again < times; ++again) own.run(allreduce(x, y));
            const std::chrono::duration<double, std::micro> time =
                std::chrono::steady_clock::now() - start;
            if (own.rank() == 0) std::printf("%zu: %.2f us\n", n, time.count() / times);
        });
}
