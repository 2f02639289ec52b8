// The border between a plugin's exceptions and its host: each becomes a status and a text.
#include <doctest/doctest.h>

#include <catena/plugin.hpp>

#include <limits>
#include <new>
#include <stdexcept>
#include <string>
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
