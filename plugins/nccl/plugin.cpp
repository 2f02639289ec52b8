// The plugin table of nccl.cuda.catena: the communicator "nccl", and how a rank finds its group.
#include <catena/plugin/tables.hpp>
#include <cstdlib>

#include "group.hpp"

namespace catena_nccl {
namespace {

using catena::plugin::fail;

// Whether a launcher has started this process together with others.
bool launched() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"}) {
        const char* const size = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
        if (size != nullptr && *size != 0 && std::string_view(size) != "1") return true;
    }
    return false;
}

std::unique_ptr<catena::plugin::Group> open(const catena_comm_options& options) {
    int devices = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        fail(CATENA_E_DEVICE, "open", "device", "a GPU and its driver",
             std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")");
    }
    if (options.device_id < 0 || options.device_id >= devices)
        fail(CATENA_E_INVALID, "open", "device_id", "0 to " + std::to_string(devices - 1),
             options.device_id);
    nccl();
    const bool threads = options.address != nullptr && options.rank >= 0 && options.size > 0;
    std::unique_ptr<Peers> peers;
    if (options.size > 1 || (options.size == 0 && launched()))
        peers = Peers::open(threads ? "threads" : "mpi", options);
    return std::make_unique<Group>(std::move(peers), options.device_id, options.timeout);
}

const catena_communicator& plain() {
    static const catena_communicator table = catena::plugin::communicator_table<open>(
        "nccl", "ranks as processes or threads with a GPU each, by NVIDIA's NCCL", "cuda");
    return table;
}

// Makes the context of a call known to Peers.
template <auto function, class... Args>
void remember_caller(catena_communicator& table,
                     catena_status (CATENA_CALL* catena_communicator::*)(catena_ctx*, Args...)) {
    table.*function = [](catena_ctx* ctx, Args... args) noexcept -> catena_status {
        caller = ctx;
        const catena_status status = (plain().*function)(ctx, args...);
        caller = nullptr;
        return status;
    };
}

template <auto... functions>
catena_communicator remembering() {
    catena_communicator table = plain();
    (remember_caller<functions>(table, functions), ...);
    return table;
}

// Made at the first call, so there is no static constructor.
const catena_plugin& table() {
    using Table = catena_communicator;
    static const Table communicator = remembering<&Table::open, &Table::split, &Table::start,
                                                  &Table::test, &Table::wait, &Table::wait_on>();
    static constexpr catena_extension extension =
        catena::plugin::extension(CATENA_COMMUNICATOR_1, "", &communicator);
    static constexpr const catena_extension* extensions[] = {&extension};
    static constexpr catena_plugin plugin = catena::plugin::table_of({.extensions = extensions});
    return plugin;
}

}  // namespace
}  // namespace catena_nccl

// Names no devices, because it has no kernels.
CATENA_EXPORT_PLUGIN("org.catena.nccl", CATENA_VERSION, "", catena_nccl::table());
