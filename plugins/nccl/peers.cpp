// A group of another communicator.
#include "peers.hpp"

namespace catena_nccl {

using catena::plugin::check_status;

std::unique_ptr<Peers> Peers::open(std::string_view name, const catena_comm_options& options) {
    const void* const* tables = catena::plugin::host().extensions(nullptr, CATENA_COMMUNICATOR_1);
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

Info Peers::info() const {
    Info info = {};
    info.struct_size = sizeof info;
    table_.info(comm_, &info);
    return info;
}

std::unique_ptr<Peers> Peers::split(std::int32_t color, std::int32_t key) const {
    catena_comm* part = nullptr;
    check_status(table_.split(caller, comm_, color, key, &part));
    return part == nullptr ? nullptr : std::make_unique<Peers>(table_, part);
}

Peers::Started Peers::start(const Exchange& x) const {
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

bool Peers::test(const Started& started) const {
    std::int32_t done = 0;
    check_status(table_.test(caller, started.get(), &done));
    return done != 0;
}

void Peers::wait(const Started& started) const { check_status(table_.wait(caller, started.get())); }

}  // namespace catena_nccl
