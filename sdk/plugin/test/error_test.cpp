// Tests the border between a plugin and its host: each exception becomes a status and a text.
#include <doctest/doctest.h>

#include <catena/plugin.hpp>

#include <atomic>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace catena::plugin;

namespace {

struct Said {
    catena_status status = CATENA_OK;
    std::string text = "nothing";
};
Said said;

catena_status CATENA_CALL hear(catena_ctx*, catena_status status, const char* text) {
    said = {status, text};
    return status;
}

template <class Body>
Said guarded_call(const Body& body) {
    catena_host host{};
    host.struct_size = sizeof(host);
    host.fail = &hear;
    const catena_host* const before = std::exchange(the_host, &host);
    said = {};
    const catena_status status = guarded(nullptr, body);
    the_host = before;
    return {status, said.text};
}

}  // namespace

TEST_CASE("what a body throws becomes a status and a text that says what happened") {
    const auto check = [](const Said& got, catena_status status, const char* text) {
        CHECK(got.status == status);
        CHECK(got.text == text);
    };
    check(guarded_call([] {}), CATENA_OK, "nothing");
    check(guarded_call([] { throw Error(CATENA_E_SHAPE, "[f] x: no"); }), CATENA_E_SHAPE,
          "[f] x: no");
    check(guarded_call([] { throw Error(CATENA_E_DTYPE); }), CATENA_E_DTYPE, "nothing");
    check(guarded_call([] { throw std::bad_alloc(); }), CATENA_E_NOMEM, "out of host memory");
    check(guarded_call([] { throw std::runtime_error("broken"); }), CATENA_E_INTERNAL, "broken");
    check(guarded_call([] { throw 1; }), CATENA_E_INTERNAL, "an exception of unknown type");
}

TEST_CASE("sizes end at the largest number, but an extent of 0 makes any array empty") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t large = std::int64_t{1} << 40;
    const auto size = [](std::vector<std::int64_t> shape) { return size_of(Shape(shape)); };
    CHECK(times(3, 4) == 12);
    CHECK(times(large, large) == most);
    CHECK(plus(3, -4) == -1);
    CHECK(plus(most, 1) == most);
    CHECK(size({}) == 1);
    CHECK(size({2, 3, 4}) == 24);
    CHECK(size({large, large, 2}) == most);
    CHECK(size({large, large, 0}) == 0);
    CHECK(size({0, large, large}) == 0);
}

TEST_CASE("what a piece throws ends the others, and is thrown again where all have ended") {
    // Calls fn for each piece separately, on three threads.
    catena_host host{};
    host.struct_size = sizeof(host);
    host.parallel_for = [](catena_ctx*, std::int64_t n, std::int64_t grain, catena_range_fn fn,
                           void* user) {
        std::atomic<std::int64_t> next{0};
        std::vector<std::thread> team;
        for (std::int32_t slot = 0; slot < 3; ++slot)
            team.emplace_back([&, slot] {
                for (std::int64_t i; (i = grain * next++) < n;)
                    fn(user, i, std::min(i + grain, n), slot);
            });
        for (std::thread& thread : team) thread.join();
    };
    const catena_host* const before = std::exchange(the_host, &host);
    std::atomic<std::int64_t> begun{0};
    const auto run = [&](std::int64_t from) {
        begun = 0;
        parallel<Isa::baseline>(nullptr, 30000, piece_work, [&](std::int64_t i, std::int64_t) {
            ++begun;
            if (i >= from) throw Error(CATENA_E_VALUE, "[f] x: no");
        });
    };
    CHECK_NOTHROW(run(30000));
    CHECK(begun == 30000);
    CHECK_THROWS_WITH_AS(run(0), "[f] x: no", Error);
    CHECK(begun <= 3);  // at most one for each thread
    CHECK_THROWS_AS(run(29999), Error);
    // A body that calls parallel() itself.
    CHECK_THROWS_AS(parallel<Isa::baseline>(nullptr, 4, piece_work,
                                            [&](std::int64_t, std::int64_t) { run(5); }),
                    Error);
    the_host = before;
}
