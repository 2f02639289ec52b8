// Tests of the caching allocator: backend allocations, cached blocks, statistics, error messages.
#include "toys.hpp"

#include <catena/core/array.hpp>
#include <catena/core/error.hpp>
#include <catena/core/memory.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

using namespace catena;
using toys::values;

namespace {

Device device() { return Device::get("vault:1"); }
toys::Memory& memory() { return toys::memory("vault:1"); }
Array empty(std::int64_t bytes) { return Array::empty({bytes}, Dtype::uint8, device()); }

}  // namespace

TEST_CASE("after warm-up the backend is not asked again" * doctest::skip(!recycle)) {
    const auto step = [] {
        std::vector<Array> arrays;
        for (std::int64_t bytes : {0, 1, 64, 65, 1000, 7168, 7169, 50'000, 1'000'000, 999'999}) {
            for (int i = 0; i < 5; ++i) arrays.push_back(empty(bytes));
        }
    };
    step();
    const std::int64_t asked = memory().allocations;
    CHECK(device().memory().system_calls == asked);
    for (int i = 0; i < 100; ++i) step();
    CHECK(memory().allocations == asked);
    CHECK(device().memory().system_calls == asked);
    CHECK(device().memory().cached > 0);
}

TEST_CASE("a freed block is the next of its size" * doctest::skip(!recycle)) {
    const void* first = empty(100'000).body()->tensor.dl.data;
    CHECK(empty(100'000).body()->tensor.dl.data == first);
    CHECK(empty(99'999).body()->tensor.dl.data == first);
    const void* small = empty(100).body()->tensor.dl.data;
    CHECK(empty(128).body()->tensor.dl.data == small);
}

TEST_CASE("a training step asks nothing of the backend after warm-up" * doctest::skip(!recycle)) {
    const PluginFunction mul("toy.mul");
    const Variable w(Array::ones({300}));
    const auto step = [&] {
        w.cleargrad();
        Variable y(Array::ones({300}));
        for (int i = 0; i < 10; ++i) y = mul.first({&y, &w});
        y = PluginFunction("toy.sum").first({&y});
        y.backward();
    };
    for (int i = 0; i < 3; ++i) step();
    const MemoryStats before = Device::current().memory();
    for (int i = 0; i < 200; ++i) step();
    const MemoryStats after = Device::current().memory();
    CHECK(after.system_calls == before.system_calls);
    CHECK(after.in_use == before.in_use);
    CHECK(after.in_use + after.cached == before.in_use + before.cached);
}

TEST_CASE("what is free serves blocks of other sizes" * doctest::skip(!recycle)) {
    device().release_cached();
    std::vector<Array> held;
    for (int i = 0; i < 8; ++i) held.push_back(empty(1'000'000));
    const std::int64_t asked = memory().allocations;
    for (int round = 0; round < 3; ++round) {
        held.clear();
        for (int i = 0; i < 300; ++i) held.push_back(empty(20'000));
        held.erase(held.begin(), held.begin() + 290);  // the last blocks lie between free ones
        { const Array a = empty(2'000'000); }
        held.clear();
        for (int i = 0; i < 2; ++i) held.push_back(empty(2'000'000));
    }
    CHECK(memory().allocations == asked);
}

TEST_CASE("cached memory can be given back" * doctest::skip(!recycle)) {
    { const Array a = empty(5'000'000); }
    CHECK(device().memory().cached >= 5'000'000);
    const std::int64_t live = memory().live_bytes;
    device().release_cached();
    CHECK(memory().live_bytes <= live - 5'000'000);
    CHECK(device().memory().cached < 5'000'000);
}

TEST_CASE("when the device is full, cached memory goes first" * doctest::skip(!recycle)) {
    device().release_cached();
    memory().limit = memory().live_bytes + 4'000'000;
    {
        { const Array a = empty(2'000'000); }
        const std::int64_t asked = memory().allocations;
        const Array b = empty(2'900'000);  // fits once the cached block is released
        CHECK(memory().allocations == asked + 2);
    }
    memory().limit = std::int64_t{1} << 40;
}

TEST_CASE("statistics count bytes that arrays hold") {
    const MemoryStats before = device().memory();
    {
        const Array a = empty(1 << 20);
        const Array view = a.reshape({1024, 1024});
        CHECK(device().memory().in_use == before.in_use + (1 << 20));
        std::vector<Array> small;
        for (int i = 0; i < 1000; ++i) small.push_back(empty(64));
        CHECK(device().memory().in_use == before.in_use + (1 << 20) + 64'000);
        CHECK(device().memory().peak >= before.in_use + (1 << 20) + 64'000);
        for (int i = 0; i < 500; ++i) small.pop_back();
        CHECK(device().memory().in_use == before.in_use + (1 << 20) + 32'000);
    }
    CHECK(device().memory().in_use == before.in_use);
}

TEST_CASE("out of memory is an error with numbers, and nothing breaks") {
    device().release_cached();
    const Array held = empty(100'000);
    memory().limit = memory().live_bytes + 1'000'000;
    try {
        const Array a = empty(2'000'000);
        FAIL("expected a MemoryError");
    } catch (const MemoryError& error) {
        const std::string text = error.what();
        INFO(text);
        CHECK(text.find("[vault:1] vault:1 is full (2002944 bytes wanted, ") == 0);
        CHECK(text.find("in use by arrays)") != std::string::npos);
        CHECK(error.status() == CATENA_E_NOMEM);
    }
    CHECK(empty(900'000).size() == 900'000);  // smaller requests still succeed
    memory().limit = std::int64_t{1} << 40;
    CHECK(empty(2'000'000).size() == 2'000'000);
    const Array other = Array::empty({3}, Dtype::float32, Device::get("toy"));
    toys::memory("toy:0").limit = 0;
    CHECK_THROWS_AS(Array::empty({1 << 24}), MemoryError);
    toys::memory("toy:0").limit = std::int64_t{1} << 40;
}

TEST_CASE("a call that runs out of memory leaves no trace") {
    const Array x = Array::ones({1 << 20});
    const Variable v(x);
    Device::current().release_cached();
    const std::int64_t before = Device::current().memory().in_use;
    toys::memory("toy:0").limit = 0;
    CHECK_THROWS_AS(PluginFunction("toy.mul").first({&v, &v}), MemoryError);
    toys::memory("toy:0").limit = std::int64_t{1} << 40;
    CHECK(Device::current().memory().in_use == before);
    CHECK(values(PluginFunction("toy.mul").first({&v, &v}).data())[0] == 1);
}

TEST_CASE("blocks are aligned to 64 bytes and do not overlap") {
    std::vector<Array> arrays;
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
    for (std::int64_t bytes = 1; bytes < 20'000; bytes += bytes / 7 + 1) {
        for (int i = 0; i < 20; ++i) {
            arrays.push_back(empty(bytes));
            const auto begin =
                reinterpret_cast<std::uintptr_t>(arrays.back().body()->tensor.dl.data);
            CHECK(begin % 64 == 0);
            ranges.emplace_back(begin, begin + static_cast<std::uintptr_t>(bytes));
        }
    }
    std::sort(ranges.begin(), ranges.end());
    bool apart = true;
    for (std::size_t i = 1; i < ranges.size(); ++i)
        apart = apart && ranges[i - 1].second <= ranges[i].first;
    CHECK(apart);
}

TEST_CASE("arrays made in one thread may die in another") {
    const std::int64_t before = device().memory().in_use;
    for (int round = 0; round < 20; ++round) {
        std::vector<Array> arrays;
        std::thread maker([&] {
            for (int i = 0; i < 200; ++i) arrays.push_back(empty(100 + i * 60));
        });
        maker.join();
        arrays.clear();
    }
    CHECK(device().memory().in_use == before);
}

TEST_CASE("the pool of small blocks: any size, any thread") {
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (std::size_t bytes = 0; bytes < 3000; bytes += 17)
        blocks.emplace_back(pool_allocate(bytes), bytes);
    for (const auto& [block, bytes] : blocks) {
        if (bytes) *static_cast<char*>(block) = 1;
    }
    std::thread other([&] {
        for (const auto& [block, bytes] : blocks) pool_free(block, bytes);
    });
    other.join();
    void* const block = pool_allocate(100);
    pool_free(block, 100);
    void* const again = pool_allocate(128);
    CHECK((!recycle || again == block));
    pool_free(again, 128);
}
