// The peer process: receives arrays and events as bytes, and executes the test's requests.
#include "ipc_peer.hpp"

#include <unistd.h>
#include <catena/catena.hpp>

#include <cstdint>
#include <optional>

using namespace catena;
namespace F = catena::functions;

namespace {

bool all_of(auto operation, int file, auto* data, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
        const ssize_t n = operation(file, data + done, size - done);
        if (n <= 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

struct State {
    Array x;
    std::optional<cuda::IPCEvent> event;

    std::string sum() const {
        return std::to_string(static_cast<int>(F::sum(Variable(x)).data().item<double>()));
    }
    void add_one() const { x.copy_from((Variable(x) + 1.0).data()); }

    std::string answer(const std::string& what, const std::string& bytes) {
        if (what.starts_with("get")) {
            x = cuda::IPCArrayHandle::from_bytes(bytes).get();
            return to_string(x.shape()) + ' ' + std::string(name(x.dtype())) + ' ' +
                   x.device().name();
        }
        if (what == "sum") return sum();
        if (what == "export") return cuda::IPCArrayHandle(x).bytes();
        if (what == "export view") return cuda::IPCArrayHandle(x.reshape({6})).bytes();
        if (what == "new event") return event.emplace(x.device()).bytes();
        if (what == "wait and sum") {
            Stream::current(x.device()).wait(*event);
            return sum();
        }
        if (what == "add one") {
            add_one();
            x.synchronize();
        } else if (what == "add one and record") {
            add_one();
            event->record(Stream::current(x.device()));
        } else if (what == "drop") {
            x = Array();
        } else if (what == "event") {
            event.emplace(cuda::IPCEvent::from_bytes(bytes));
        } else {
            return "what?";
        }
        return "done";
    }
};

}  // namespace

void ipc_send(int file, const std::string& bytes) {
    const std::uint64_t size = bytes.size();
    all_of(write, file, reinterpret_cast<const char*>(&size), sizeof size) &&
        all_of(write, file, bytes.data(), bytes.size());
}

std::string ipc_receive(int file) {
    std::uint64_t size = 0;
    if (!all_of(read, file, reinterpret_cast<char*>(&size), sizeof size)) return {};
    std::string bytes(size, '\0');
    if (!all_of(read, file, bytes.data(), bytes.size())) return {};
    return bytes;
}

int ipc_peer() {
    State state;
    for (std::string what; what = ipc_receive(0), !what.empty();) {
        const std::string bytes = ipc_receive(0);
        std::string answer;
        try {
            answer = state.answer(what, bytes);
        } catch (const InvalidError&) {
            answer = "InvalidError";
        } catch (const std::exception& error) {
            answer = error.what();
        }
        ipc_send(1, answer);
    }
    return 0;
}
