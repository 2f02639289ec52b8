// Tests parallel_for: each index once, whole grains, nesting, several callers, any thread count.
#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "host.hpp"

using namespace cpu_test;

namespace {

// Runs f(begin, end, slot) over 0 .. n.
template <typename F>
void parallel_for(int64_t n, int64_t grain, F f) {
    plugin().threads->parallel_for(
        plugin().dev, n, grain,
        [](void* user, int64_t begin, int64_t end, int32_t slot) {
            (*static_cast<F*>(user))(begin, end, slot);
        },
        &f);
}

void set_count(int32_t n) { plugin().threads->set_count(plugin().dev, n); }

int32_t count() { return plugin().threads->count(plugin().dev); }

// Whether each index is visited once, pieces begin at grain multiples, one per slot at a time.
bool covers(int64_t n, int64_t grain) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
    std::vector<std::atomic<int>> in_slot(static_cast<size_t>(count()));
    std::atomic<bool> good = true;
    parallel_for(n, grain, [&](int64_t begin, int64_t end, int32_t slot) {
        if (begin % grain != 0 || begin >= end || end > n || (end % grain != 0 && end != n))
            good = false;
        if (slot < 0 || slot >= count() || in_slot[static_cast<size_t>(slot)]++ != 0) good = false;
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        --in_slot[static_cast<size_t>(slot)];
    });
    for (const auto& visit : visits)
        if (visit != 1) return false;
    return good;
}

}  // namespace

TEST_CASE("every index is visited once, in pieces that begin at multiples of the grain") {
    for (const int32_t threads : {1, 2, 3, 8}) {
        set_count(threads);
        REQUIRE(count() == threads);
        for (const int64_t n : {1, 2, 7, 64, 1000, 4097})
            for (const int64_t grain : {1, 3, 64, 5000}) {
                CAPTURE(threads);
                CAPTURE(n);
                CAPTURE(grain);
                CHECK(covers(n, grain));
            }
    }
    set_count(0);
}

TEST_CASE("an empty range calls nothing, and a grain below 1 is 1") {
    parallel_for(0, 1, [](int64_t, int64_t, int32_t) { FAIL("called"); });
    parallel_for(-5, 1, [](int64_t, int64_t, int32_t) { FAIL("called"); });
    std::atomic<int64_t> sum = 0;
    parallel_for(10, 0, [&](int64_t begin, int64_t end, int32_t) { sum += end - begin; });
    CHECK(sum == 10);
}

TEST_CASE("the default is the processors that the process may use") {
    set_count(0);
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    CHECK(count() >= 1);
    CHECK(count() <= CPU_COUNT(&set));
}

TEST_CASE("all threads take part: pieces that wait for each other finish") {
    set_count(3);
    std::atomic<int> arrived = 0;
    parallel_for(3, 1, [&](int64_t, int64_t, int32_t) {
        ++arrived;
        while (arrived < 3) std::this_thread::yield();
    });
    CHECK(arrived == 3);
    set_count(0);
}

TEST_CASE("every other call begins with what the call before did last") {
    set_count(2);
    // The caller owns the lower half, in order; the other thread waits until the caller has begun.
    const auto first_of_caller = [] {
        std::atomic<int64_t> first = -1;
        parallel_for(64, 1, [&](int64_t begin, int64_t, int32_t slot) {
            int64_t none = -1;
            if (slot == 0) first.compare_exchange_strong(none, begin);
            while (first < 0) std::this_thread::yield();
        });
        return first.load();
    };
    const int64_t one = first_of_caller();
    const int64_t other = first_of_caller();
    CHECK(std::min(one, other) == 0);
    CHECK(std::max(one, other) == 28);  // eight chunks of four
    CHECK(first_of_caller() == one);
    set_count(0);
}

TEST_CASE("nested calls run on the calling thread, in its slot") {
    set_count(4);
    std::vector<std::atomic<int>> visits(64 * 64);
    std::atomic<bool> same = true;
    parallel_for(64, 1, [&](int64_t begin, int64_t end, int32_t slot) {
        for (int64_t i = begin; i < end; ++i) {
            const std::thread::id caller = std::this_thread::get_id();
            parallel_for(64, 1, [&](int64_t b, int64_t e, int32_t inner) {
                if (std::this_thread::get_id() != caller || inner != slot) same = false;
                for (int64_t j = b; j < e; ++j) ++visits[static_cast<size_t>(i * 64 + j)];
            });
        }
    });
    CHECK(same);
    for (const auto& visit : visits) REQUIRE(visit == 1);
    set_count(0);
}

TEST_CASE("threads of the host may call at the same time, while another changes the count") {
    std::atomic<int64_t> sum = 0;
    std::vector<std::thread> callers;
    callers.reserve(4);
    for (int i = 0; i < 4; ++i)
        callers.emplace_back([&] {
            for (int round = 0; round < 300; ++round)
                parallel_for(100, 3, [&](int64_t begin, int64_t end, int32_t) {
                    for (int64_t j = begin; j < end; ++j) sum += j;
                });
        });
    for (int32_t n = 0; n < 60; ++n) {
        set_count(n % 5 + 1);
        std::this_thread::yield();
    }
    for (auto& caller : callers) caller.join();
    CHECK(sum == int64_t{4} * 300 * 4950);
    set_count(0);
}

TEST_CASE("workers wake up from their sleep, and start again after the end") {
    set_count(2);
    for (int round = 0; round < 5; ++round) {
        if (round == 3) plugin().table->deinit();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::atomic<int> arrived = 0;
        parallel_for(2, 1, [&](int64_t, int64_t, int32_t) {
            ++arrived;
            while (arrived < 2) std::this_thread::yield();
        });
        CHECK(arrived == 2);
    }
    set_count(0);
}
