// Tests of arrays and events shared between processes: a second process uses memory of this one.
#include "gpus.hpp"
#include "ipc_peer.hpp"

#include <catena/core/device.hpp>

#include <catena/abi/ext/draft/about.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

using namespace gpus;

namespace {

// Runs this program as ipc_peer() and exchanges blocks of bytes with it. Each block follows its length.
class Peer {
public:
    Peer() {
        int to[2], from[2];
        REQUIRE(pipe2(to, O_CLOEXEC) == 0);
        REQUIRE(pipe2(from, O_CLOEXEC) == 0);
        child_ = fork();
        REQUIRE(child_ >= 0);
        if (child_ == 0) {
            dup2(to[0], 0);
            dup2(from[1], 1);
            execl("/proc/self/exe", "peer", "--ipc-peer", static_cast<char*>(nullptr));
            _exit(127);
        }
        close(to[0]);
        close(from[1]);
        write_ = to[1];
        read_ = from[0];
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() {
        close(write_);
        close(read_);
        int status = -1;
        CHECK(waitpid(child_, &status, 0) == child_);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    std::string ask(const std::string& what, const std::string& bytes = {}) {
        ipc_send(write_, what);
        ipc_send(write_, bytes);
        return ipc_receive(read_);
    }

private:
    pid_t child_;
    int write_ = -1;
    int read_ = -1;
};

// Whether processes can share GPU memory. Emulated GPUs must support it.
bool shared() {
    const bool yes = cuda::ipc_available(second_id());
    const auto* about =
        static_cast<const catena_about*>(backend_extension(second(), CATENA_ABOUT_DRAFT_1));
    if (about) {
        const std::string_view text = about->text(backend_device(second()));
        if (text.starts_with("Emulated")) REQUIRE(yes);
    }
    if (!yes) std::puts("skipped: cases that expect memory shared between processes");
    return yes;
}

Array numbers() {
    return cuda::to_gpu(Array::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {2, 3}, cuda::host()),
                        second_id());
}

}  // namespace

TEST_CASE("a backend that shares nothing says so") {
    const bool told = std::getenv("CATENA_EMULATOR_SHARES") != nullptr;
    if (told) REQUIRE_FALSE(cuda::ipc_available(second_id()));
    if (cuda::ipc_available(second_id())) return;
    contains(error_of<Error>([] { cuda::IPCArrayHandle{numbers()}; }), "share");
    CHECK_THROWS_AS(cuda::IPCEvent{second_id()}, Error);
}

TEST_CASE("what is no handle, and what is on no GPU") {
    const SameDevice same;
    CHECK_THROWS_AS(cuda::IPCArrayHandle{Array::ones({2}, Dtype::float32, cuda::host())},
                    InvalidError);
    CHECK_THROWS_AS(cuda::IPCArrayHandle{Array()}, InvalidError);
    CHECK_THROWS_AS(cuda::IPCEvent{99}, DeviceError);
    for (const std::string& bytes : {std::string(), std::string("x"), std::string(304, '\0'),
                                     std::string(304, '\xff'), std::string(305, 'c')}) {
        contains(error_of<InvalidError>([&] { (void)cuda::IPCArrayHandle::from_bytes(bytes); }),
                 "[IPCArrayHandle] bytes: expected the result of bytes() of an array, got");
        contains(error_of<InvalidError>([&] { (void)cuda::IPCEvent::from_bytes(bytes); }),
                 "[IPCEvent] bytes");
    }
}

TEST_CASE("handles say what they are of") {
    if (!shared()) return;
    const SameDevice same;
    const Array x = numbers();
    const cuda::IPCArrayHandle handle(x);
    CHECK(handle.shape() == Shape{2, 3});
    CHECK(handle.dtype() == Dtype::float32);
    CHECK(handle.device_name() == second().name());
    CHECK(handle.get().body() == x.body());  // in the same process: the same array
    const auto again = cuda::IPCArrayHandle::from_bytes(handle.bytes());
    CHECK(again.shape() == handle.shape());
    contains(
        error_of<InvalidError>([&] { (void)again.get(); }),
        "[IPCArrayHandle] process: expected another process than that of the array, got the same");
    const cuda::IPCEvent event(second_id());
    CHECK(event.device() == second());
    contains(error_of<InvalidError>([&] { (void)cuda::IPCEvent::from_bytes(event.bytes()); }),
             "[IPCEvent] process");
    contains(error_of<InvalidError>([&] { (void)cuda::IPCEvent::from_bytes(handle.bytes()); }),
             "got an array");
    for (std::size_t i = 0; i < handle.bytes().size(); ++i) {
        std::string bytes = handle.bytes();
        bytes[i] = static_cast<char>(bytes[i] ^ 0x40);
        CHECK_THROWS_AS((void)cuda::IPCArrayHandle::from_bytes(bytes), InvalidError);
    }
    // An empty array has no memory to share, so any process can open its handle.
    const cuda::IPCArrayHandle nothing(Array::empty({0, 3}, Dtype::int32, second()));
    CHECK(cuda::IPCArrayHandle::from_bytes(nothing.bytes()).get().shape() == Shape{0, 3});
}

TEST_CASE("another process reads, writes, and passes on") {
    if (!shared()) return;
    const SameDevice same;
    const Array x = numbers();
    const Array keeps_the_offset = cuda::ones({100}, Dtype::float32);
    const cuda::IPCArrayHandle handle(x);
    std::string passed_on;
    {
        Peer peer;
        CHECK(peer.ask("get", handle.bytes()) == "(2, 3) float32 " + second().name());
        CHECK(peer.ask("sum") == "21");
        CHECK(peer.ask("add one") == "done");
        CHECK(values(x) == Floats{2, 3, 4, 5, 6, 7});
        x.fill(10);
        x.synchronize();
        CHECK(peer.ask("sum") == "60");
        passed_on = peer.ask("export");  // the peer exports the array it received
        const std::string view = peer.ask("export view");
        {
            Peer third;
            CHECK(third.ask("get", passed_on) == "(2, 3) float32 " + second().name());
            CHECK(third.ask("sum") == "60");
            CHECK(third.ask("get", view) == "(6,) float32 " + second().name());
            CHECK(third.ask("sum") == "60");
            CHECK(third.ask("add one") == "done");
        }
        CHECK(values(x) == Floats(6, 11));
        CHECK(peer.ask("sum") == "66");
        // A handle that the peer exported refers to this process's own memory.
        CHECK_THROWS_AS((void)cuda::IPCArrayHandle::from_bytes(passed_on).get(), InvalidError);
        CHECK(peer.ask("get nonsense", handle.bytes().substr(1)) == "InvalidError");
        CHECK(peer.ask("drop") == "done");
        CHECK(peer.ask("get", cuda::IPCArrayHandle(numbers().reshape({3, 2})).bytes()).empty() ==
              false);
    }
    CHECK(values(x) == Floats(6, 11));
    CHECK(values(keeps_the_offset) == Floats(100, 1));
}

TEST_CASE("a process waits for another's event") {
    if (!shared()) return;
    const SameDevice same;
    Peer peer;
    const Array x = numbers();
    const cuda::IPCEvent ready(second_id());
    CHECK(peer.ask("get", cuda::IPCArrayHandle(x).bytes()) == "(2, 3) float32 " + second().name());
    CHECK(peer.ask("event", ready.bytes()) == "done");
    const cuda::Stream stream(second());
    for (int i = 1; i <= 5; ++i) {
        {
            const cuda::using_stream scope(stream);
            x.fill(i);
            ready.record(stream);
        }
        CHECK(peer.ask("wait and sum") == std::to_string(6 * i));
    }
    // The peer records an event, and this process waits for it.
    const auto theirs = cuda::IPCEvent::from_bytes(peer.ask("new event"), second_id());
    CHECK(peer.ask("add one and record") == "done");
    stream.wait(theirs);
    stream.synchronize();
    CHECK(values(x) == Floats(6, 6));
}
