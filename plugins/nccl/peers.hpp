// A group of another communicator, through which the ranks talk on the host.
#pragma once

#include <catena/plugin/communicator.hpp>

#include <memory>

namespace catena_nccl {

using Info = catena_comm_info;

// The context of the current call of this plugin, which gets the text of a failure of the other
// communicator; null in other threads.
inline thread_local catena_ctx* caller = nullptr;

// One rank's membership. The functions throw Error without a text, as the caller's context has it.
class Peers {
public:
    // Throws Error if there is no communicator of this name.
    static std::unique_ptr<Peers> open(std::string_view name, const catena_comm_options& options);
    Peers(const catena_communicator& table, catena_comm* comm) : table_(table), comm_(comm) {}
    ~Peers() { table_.close(comm_); }
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    Info info() const;
    // Returns null for color < 0.
    std::unique_ptr<Peers> split(std::int32_t color, std::int32_t key) const;
    void abort(const std::string& reason) const { table_.abort(comm_, reason.c_str()); }

    // An operation that was started.
    struct Release {
        void (*release)(catena_work*);
        void operator()(catena_work* work) const { release(work); }
    };
    using Started = std::unique_ptr<catena_work, Release>;
    // On bytes, of the CPU. timeout: 0 is that of the group.
    struct Exchange {
        std::int32_t kind, peer = 0;
        const void* send = nullptr;
        void* recv = nullptr;
        std::uint64_t bytes = 0;
        double timeout = 0;
        const char* label = nullptr;
    };
    Started start(const Exchange& exchange) const;
    bool test(const Started& started) const;
    void wait(const Started& started) const;

private:
    const catena_communicator& table_;
    catena_comm* const comm_;
};

}  // namespace catena_nccl
