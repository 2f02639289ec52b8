// A group of another communicator, through which the ranks talk on the host.
#pragma once

#include <catena/plugin/communicator.hpp>

namespace catena_nccl {

using Info = catena_comm_info;
using catena::plugin::check_status;

// The context of the current call of this plugin, which gets the text of a failure of the other
// communicator; null in other threads.
inline thread_local catena_ctx* caller = nullptr;

// One rank's membership. The functions throw Error without a text, as the caller's context has it.
class Peers {
public:
    // Throws Error if there is no communicator of this name.
    static std::unique_ptr<Peers> open(std::string_view name, const catena_comm_options& options) {
        const void* const* tables =
            catena::plugin::host().extensions(nullptr, CATENA_COMMUNICATOR_1);
        for (; *tables != nullptr; ++tables) {
            const auto& table = *static_cast<const catena_communicator*>(*tables);
            if (table.name != name) continue;
            catena_comm* comm = nullptr;
            check_status(table.open(caller, &options, &comm));
            return std::make_unique<Peers>(table, comm);
        }
        catena::plugin::fail(CATENA_E_UNSUPPORTED, "open", "nccl",
                             "the communicator " + std::string(name) + " for its control messages",
                             "none");
    }
    Peers(const catena_communicator& table, catena_comm* comm) : table_(table), comm_(comm) {}
    ~Peers() { table_.close(comm_); }
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    Info info() const {
        Info info = {};
        info.struct_size = sizeof info;
        table_.info(comm_, &info);
        return info;
    }
    // Returns null for color < 0.
    std::unique_ptr<Peers> split(std::int32_t color, std::int32_t key) const {
        catena_comm* part = nullptr;
        check_status(table_.split(caller, comm_, color, key, &part));
        return part == nullptr ? nullptr : std::make_unique<Peers>(table_, part);
    }
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
    Started start(const Exchange& x) const {
        catena_operation o = {};
        o.struct_size = sizeof o;
        o.kind = x.kind;
        o.peer = x.peer;
        o.dtype = {CATENA_CODE_UINT, 8, 1};
        o.send = x.send;
        o.recv = x.recv;
        o.count = x.bytes;
        o.device_type = 1;  // kDLCPU
        o.timeout = x.timeout;
        o.label = x.label;
        catena_work* work = nullptr;
        check_status(table_.start(caller, comm_, &o, &work));
        return Started(work, {table_.release});
    }
    bool test(const Started& started) const {
        std::int32_t done = 0;
        check_status(table_.test(caller, started.get(), &done));
        return done != 0;
    }
    void wait(const Started& started) const { check_status(table_.wait(caller, started.get())); }

private:
    const catena_communicator& table_;
    catena_comm* const comm_;
};

}  // namespace catena_nccl
