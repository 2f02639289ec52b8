// The border between a plugin's exceptions and its host: each becomes a status and a text.
#include <doctest/doctest.h>

#include <catena/plugin.hpp>

#include <new>
#include <stdexcept>
#include <string>

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
