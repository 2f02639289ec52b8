// Profile: measures the time of each kernel.
#pragma once

#include <catena/diagnostics/call_observer.hpp>

#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

namespace catena {

// Records the kernels that run during its lifetime, in all threads. Kernels from formulas appear
// under their own names; their first call includes compilation. At most one Profile may exist. It
// waits for asynchronous devices before and after each call, so that times are those of the work;
// work that would run in parallel then does not. It does not see work that a recording launches.
//
//     Profile profile;
//     ... some steps ...
//     fmt::print("{}", profile.table());
//     profile.write_trace("trace.json");   // for chrome://tracing and https://ui.perfetto.dev
class Profile final : public CallObserver {
public:
    struct Row {
        std::string group;      // the composition that the program called, or ""
        std::string function;   // "catena.linear", or the name of a kernel from a formula
        std::string direction;  // "forward", "backward"
        std::string device;     // "cpu:0"
        std::string kernel;     // plugin, variant and instruction set; or "formula"
        std::int64_t calls = 0;
        double seconds = 0;        // total
        double longest = 0;        // of the longest call
        std::uint64_t bytes = 0;   // written, total
        std::uint64_t memory = 0;  // peak memory of the device at the end of a call
    };

    // Throws InvalidError if another Profile exists.
    [[nodiscard]] Profile();
    // No other thread may be calling a function.
    ~Profile() override;

    std::vector<Row> rows() const;  // longest first
    // The rows as text: the `most` longest, parts below compositions, and the rest in one line.
    std::string table(std::size_t most = 30) const;
    // Writes up to a million calls in Chrome's trace event format. Throws DataError.
    void write_trace(const std::filesystem::path& file) const;

    void called(const KernelCall& call) noexcept override;

private:
    struct Key {
        const catena_function* function;
        const catena_kernel* kernel;
        std::int32_t phase;
        const void* device;
        std::string_view group;
        auto operator<=>(const Key&) const = default;
    };
    struct Sum {
        Device device;
        std::int64_t calls = 0, nanoseconds = 0, longest = 0;
        std::uint64_t bytes = 0, memory = 0;
    };
    struct Event {
        Key key;
        std::int64_t begin, end;
        std::uint64_t bytes, memory;
        std::uint32_t thread;
        Ref<const CallGroup> group;  // held, so that no other group gets its address
    };
    Row row(const Key& key, const Sum& sum) const;

    mutable std::mutex mutex_;
    std::map<Key, Sum> sums_;
    std::vector<Event> events_;
    std::map<std::thread::id, std::uint32_t> threads_;
    std::int64_t begin_;
    std::int64_t missed_ = 0;
};

}  // namespace catena
