// The plugin table of nccl.cuda.catena: the communicator "nccl", and how a rank finds its group.
#include <catena/plugin/tables.hpp>
#include <cstdlib>

#include "group.hpp"

namespace catena_nccl {
namespace {

using catena::plugin::fail;

std::string variable(const char* name) {
    const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return text != nullptr ? text : "";
}

// Returns -1 if the variable is not set.
int number_in(const char* name) {
    const std::string text = variable(name);
    if (text.empty()) return -1;
    char* end = nullptr;
    const long n = std::strtol(text.c_str(), &end, 10);
    if (*end != 0 || n < 0 || n > 1 << 24)
        fail(CATENA_E_INVALID, "open", name, "a number of ranks", "'" + text + "'");
    return static_cast<int>(n);
}

// Fills in the rank and size that a launcher of processes gives: Open MPI, PMI, Slurm, torchrun.
void ask_launcher(int& rank, int& size) {
    constexpr const char* launchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                            {"PMI_RANK", "PMI_SIZE"},
                                            {"SLURM_PROCID", "SLURM_NTASKS"},
                                            {"RANK", "WORLD_SIZE"}};
    for (const auto& [rank_name, size_name] : launchers) {
        const int its_rank = number_in(rank_name), its_size = number_in(size_name);
        if (its_rank < 0 || its_size < 1) continue;
        if (rank < 0) rank = its_rank;
        if (size == 0) size = its_size;
        return;
    }
}

std::string address_of(const catena_comm_options& options) {
    if (options.address != nullptr) return options.address;
    if (std::string address = variable("NCCL_COMM_ID"); !address.empty()) return address;
    const std::string host = variable("MASTER_ADDR"), port = variable("MASTER_PORT");
    return host.empty() || port.empty() ? "" : host + ":" + port;
}

std::unique_ptr<catena::plugin::Group> open(const catena_comm_options& options) {
    int rank = options.rank, size = options.size;
    if (rank < 0 || size == 0) ask_launcher(rank, size);
    if (size == 0) size = 1;
    if (rank < 0 && size == 1) rank = 0;
    if (rank < 0 || rank >= size)
        fail(CATENA_E_INVALID, "open", "rank",
             "0 to " + std::to_string(size - 1) + ", in the options or from a launcher", rank);
    std::string address = size > 1 ? address_of(options) : "";
    if (size > 1 && address.empty())
        fail(CATENA_E_INVALID, "open", "address",
             "host:port of rank 0, in the options, NCCL_COMM_ID, or MASTER_ADDR and MASTER_PORT",
             "none");
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
    return std::make_unique<Group>(Control::Place{rank, size, std::move(address), {}},
                                   options.device_id, options.timeout);
}

// Made at the first call, so there is no static constructor.
const catena_plugin& table() {
    static const catena_communicator communicator = catena::plugin::communicator_table<open>(
        "nccl", "ranks as processes or threads with a GPU each, by NVIDIA's NCCL", "cuda");
    static constexpr catena_extension extension =
        catena::plugin::extension(CATENA_COMMUNICATOR_1, "", &communicator);
    static constexpr const catena_extension* extensions[] = {&extension};
    static constexpr catena_plugin plugin = catena::plugin::table_of({.extensions = extensions});
    return plugin;
}

}  // namespace
}  // namespace catena_nccl

// Names no devices, because it has no kernels.
CATENA_EXPORT_PLUGIN("org.catena.nccl", "0.1.0", "", catena_nccl::table());
