// Shares memory and events between two processes: this one and a second instance of the program.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "host.hpp"

extern char** environ;
using namespace cuda_test;

namespace {

const catena_ipc& ipc() { return plugin().extension<catena_ipc>(CATENA_IPC_DRAFT_1); }

std::string to_hex(const catena_ipc_handle& handle) {
    std::string text;
    for (const uint8_t byte : handle.bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

catena_ipc_handle from_hex(const char* text) {
    catena_ipc_handle handle;
    for (std::size_t i = 0; i < sizeof handle.bytes; ++i)
        handle.bytes[i] =
            static_cast<uint8_t>(std::strtoul(std::string(text + 2 * i, 2).c_str(), nullptr, 16));
    return handle;
}

// Runs one test of this program in a process of its own.
int run_other(const char* test, const catena_ipc_handle& memory, uint64_t offset,
              const catena_ipc_handle& event) {
    setenv("IPC_MEMORY", to_hex(memory).c_str(), 1);
    setenv("IPC_OFFSET", std::to_string(offset).c_str(), 1);
    setenv("IPC_EVENT", to_hex(event).c_str(), 1);
    const std::string filter = std::string("--test-case=") + test;
    std::string program = "/proc/self/exe";
    char path[4096] = {};
    if (readlink(program.c_str(), path, sizeof path - 1) < 0) return -1;
    std::string skip = "--no-skip";
    char* args[] = {path, const_cast<char*>(filter.c_str()), skip.data(), nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, path, nullptr, nullptr, args, environ) != 0) return -1;
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

}  // namespace

TEST_CASE("memory and an event of another process" * doctest::skip()) {
    Stream s;
    const catena_ipc_handle memory = from_hex(std::getenv("IPC_MEMORY"));
    const catena_ipc_handle shared = from_hex(std::getenv("IPC_EVENT"));
    const std::size_t offset = std::strtoul(std::getenv("IPC_OFFSET"), nullptr, 10);
    void* data = nullptr;
    REQUIRE(ipc().memory_import(ctx, s.dev, &memory, &data) == CATENA_OK);
    void* again = nullptr;
    REQUIRE(ipc().memory_import(ctx, s.dev, &memory, &again) == CATENA_OK);
    CHECK(again == data);
    ipc().memory_close(s.dev, again);
    catena_event* event = nullptr;
    REQUIRE(ipc().event_import(ctx, s.dev, &shared, &event) == CATENA_OK);
    REQUIRE(backend().event_wait(ctx, s.dev, event, s.stream) == CATENA_OK);
    auto* x = reinterpret_cast<int*>(static_cast<char*>(data) + offset);
    const auto values = s.get(x, 50);
    for (int i = 0; i < 50; ++i) CHECK(values[static_cast<std::size_t>(i)] == 1000 + i);
    const int value = 0x01020304;
    REQUIRE(cuda_test::memory().fill(ctx, s.dev, s.stream, x + 10, &value, 4, 5) == CATENA_OK);
    REQUIRE(backend().event_record(ctx, s.dev, event, s.stream) == CATENA_OK);
    s.sync();
    backend().event_destroy(s.dev, event);
    ipc().memory_close(s.dev, data);
    // A handle that no process exported.
    catena_ipc_handle wrong = {};
    CHECK(ipc().memory_import(ctx, s.dev, &wrong, &data) == CATENA_E_DEVICE);
    CHECK(says("[cuda ipc import] cudaIpcOpenMemHandle on device 0: cudaErrorInvalid"));
}

TEST_CASE("what one process writes the other reads, and back") {
    Stream s;
    std::vector<int> values(100);
    std::iota(values.begin(), values.end(), 990);
    int* x = s.put(values);
    catena_event* event = nullptr;
    REQUIRE(ipc().event_create(ctx, s.dev, &event) == CATENA_OK);
    catena_ipc_handle memory = {};
    catena_ipc_handle shared = {};
    uint64_t offset = 0;
    REQUIRE(ipc().memory_export(ctx, s.dev, x + 10, &memory, &offset) == CATENA_OK);
    CHECK(offset == 40);
    REQUIRE(ipc().event_export(ctx, s.dev, event, &shared) == CATENA_OK);
    REQUIRE(backend().event_record(ctx, s.dev, event, s.stream) == CATENA_OK);
    CHECK(run_other("memory and an event of another process", memory, offset, shared) == 0);
    REQUIRE(backend().event_wait(ctx, s.dev, event, s.stream) == CATENA_OK);
    const auto got = s.get(x, 100);
    for (std::size_t i = 0; i < 100; ++i)
        CHECK(got[i] == (i >= 20 && i < 25 ? 0x01020304 : values[i]));
    backend().event_destroy(s.dev, event);
}

TEST_CASE("what cannot be exported or imported is refused in words") {
    Stream s;
    catena_ipc_handle handle = {};
    uint64_t offset = 0;
    int host = 0;
    CHECK(ipc().memory_export(ctx, s.dev, &host, &handle, &offset) == CATENA_E_INVALID);
    CHECK(
        says("[cuda ipc export] address: expected memory of device 0 that this process allocated"));
    int* x = s.alloc<int>(4);
    CHECK(ipc().memory_export(ctx, s.dev, x + 4, &handle, &offset) == CATENA_E_INVALID);
    REQUIRE(ipc().memory_export(ctx, s.dev, x, &handle, &offset) == CATENA_OK);
    void* data = nullptr;
    CHECK(ipc().memory_import(ctx, s.dev, &handle, &data) == CATENA_E_DEVICE);
    CHECK(says("the process that exported it cannot import it"));
    catena_event* plain = nullptr;
    REQUIRE(backend().event_create(ctx, s.dev, &plain) == CATENA_OK);
    CHECK(ipc().event_export(ctx, s.dev, plain, &handle) == CATENA_E_DEVICE);
    CHECK(says("expected an event of event_create() of catena.ipc"));
    backend().event_destroy(s.dev, plain);
}
