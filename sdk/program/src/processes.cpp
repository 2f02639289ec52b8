// Processes: opens the communicator, compares the options of ranks and divides the processors.
#include "ranks.hpp"

#include <catena/core/error.hpp>
#include <catena/program/processes.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>

namespace po = boost::program_options;

namespace catena {

using distributed::Communicator;

namespace {

constexpr double most_bucket = 1 << 20;  // MiB

// Outlives Program, because run_program() tells the other processes how the program ended.
Communicator& the_communicator() {
    static Communicator communicator;
    return communicator;
}

// The machine and the processors that this process may use.
std::string processors() {
    std::vector<int> allowed;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &set)) allowed.push_back(i);
    char host[256] = {};
    (void)gethostname(host, sizeof host - 1);
    return fmt::format("{} {}", host, fmt::join(allowed, ","));
}

// The number of processes that the launcher has started; 0 without one.
int launched() {
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
        if (const char* size = std::getenv(variable)) return std::atoi(size);
    return 0;
}

}  // namespace

std::uint64_t stream_of_rank(std::uint64_t seed, int rank) {
    return seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(rank);
}

std::string device_of_rank(const std::string& names) {
    if (names.empty() || names.find_first_of(":,") != names.npos) return names;
    for (const char* variable :
         {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"}) {
        const char* rank = std::getenv(variable);
        const std::string own = rank ? fmt::format("{}:{}", names, rank) : "";
        for (const std::string& device : Device::list())
            if (device == own) return own;
    }
    return names;
}

std::string named_by_rank(std::string_view what) {
    const Communicator& comm = the_communicator();
    const std::string name = fmt::format("rank {}: ", comm.rank());
    const bool named = comm.size() == 1 || what.find(name) != what.npos;
    return named ? std::string(what) : name + std::string(what);
}

bool differs_between_ranks(std::string_view name) {
    return name.starts_with("random") || name.starts_with("score");
}

std::string difference_between_ranks(const Communicator& communicator,
                                     const std::map<std::string, std::string>& values) {
    using Values = std::map<std::string, std::string>;
    std::string own;
    nlohmann::json::to_cbor(values, own);
    std::vector<Values> all;
    for (const std::string& text : communicator.allgather_text(own))
        all.push_back(nlohmann::json::from_cbor(text).get<Values>());
    const auto shown = [&](std::size_t rank, const std::string& name) {
        const auto found = all[rank].find(name);
        return found == all[rank].end() ? "none" : one_line(beginning(found->second));
    };
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        std::vector<std::string> names;
        for (const std::size_t of : {std::size_t{0}, rank}) {
            for (const auto& [name, value] : all[of]) {
                const auto other = all[rank - of].find(name);
                if (other == all[rank - of].end() || other->second != value) names.push_back(name);
            }
        }
        if (names.empty()) continue;
        const std::string& name = names.front();
        return fmt::format(
            "{}: expected the same in all processes, got {} on rank 0 and {} on "
            "rank {}",
            name, shown(0, name), shown(rank, name), rank);
    }
    return {};
}

int threads_of_process(int threads, std::span<const std::string> places, int rank) {
    const auto sharing = std::ranges::count(places, places[static_cast<std::size_t>(rank)]);
    return std::max(1, threads / static_cast<int>(sharing));
}

void abort_processes(std::string_view reason) noexcept { the_communicator().abort(reason); }

void close_communicator() { the_communicator() = Communicator(); }

const Communicator& Processes::communicator() const { return the_communicator(); }

void Processes::add_to(ProgramOptions& options) {
    // clang-format off
    options.add_group("several processes").add_options()
        ("communicator", po::value(&communicator_)->value_name("NAME"),
         "train in several processes, which divide each minibatch: mpi (mpirun -n 4 ...), nccl for GPUs")
        ("timeout", po::value(&timeout_)->value_name("SECONDS"),
         "how long to wait for other processes; default: $CATENA_COMMUNICATOR_TIMEOUT, or 300")
        ("checkpoint", options.path(checkpoint_, "FOLDER"),
         "write a checkpoint when --save would write a snapshot; start from the newest complete one")
        ("keep", options.value(keep_), "how many checkpoints to keep")
        ("shard", po::bool_switch(&shard_),
         "divide the optimizer's state among the processes (ZeRO stage 1)")
        ("wire", po::value(&wire_)->value_name("DTYPE"),
         "send gradients in float16 or bfloat16; default: the dtype of the parameters")
        ("bucket", options.value(bucket_), "send gradients in buckets of this many MiB")
        ("double-buffering", po::bool_switch(&double_buffering_),
         "send gradients during the next step, which uses those of the previous one")
        ("micro-batches", po::value(&micro_batches_)->value_name("N"),
         "divide each minibatch into N parts, whose gradients are added up, in pairs with --deterministic: "
         "then the result is the same for each number of processes that divides N; default: one part for "
         "each process");
    // clang-format on
}

void Processes::check(const ProgramOptions& options) const {
    for (const char* option : {"timeout", "shard", "wire", "bucket", "double-buffering"})
        options.require_with(option, "communicator");
    if (options.given("timeout")) options.require_positive("timeout", timeout_);
    options.require(wire_.empty() || wire_ == "float16" || wire_ == "bfloat16", "wire",
                    "float16 or bfloat16", wire_);
    options.require_positive("bucket", bucket_);
    options.require(bucket_ <= most_bucket, "bucket",
                    fmt::format("up to {} MiB", most_bucket).c_str(), bucket_);
    options.require_with("keep", "checkpoint");
    options.require_at_least("keep", keep_, 1);
    if (options.given("micro-batches"))
        options.require_at_least("micro-batches", micro_batches_, 1);
}

void Processes::open(Device device) {
    close_communicator();
    if (communicator_.empty()) return;
    the_communicator() = Communicator::open(communicator_, {.device = device, .timeout = timeout_});
    const int size = communicator().size();
    ProgramOptions::require(
        size > 1 || launched() <= 1, "communicator",
        fmt::format("one that joins the {} processes of the launcher, such as mpi", launched())
            .c_str(),
        communicator_ + ", whose group has one");
    ProgramOptions::require(micro_batches() % size == 0, "micro-batches",
                            fmt::format("a multiple of {} processes", size).c_str(),
                            micro_batches_);
}

void Processes::require_equal(const ProgramOptions& options) const {
    if (!has_several()) return;
    const std::string different = difference_between_ranks(communicator(), options.common_values());
    if (different.empty()) return;
    close_communicator();  // all processes throw the same error, so none has to abort the others
    throw po::error(different);
}

// Without --threads, processes that may use the same processors divide them.
void Processes::set_threads(std::span<const Device> devices, int threads) const {
    std::vector<std::string> places{""};
    if (has_several()) places = communicator().allgather_text(processors());
    for (const Device device : devices) {
        if (threads > 0) device.set_threads(threads);
        else if (has_several())
            device.set_threads(threads_of_process(device.threads(), places, communicator().rank()));
    }
}

std::int64_t Processes::micro_batches() const {
    return micro_batches_ > 0 ? micro_batches_ : communicator().size();
}

distributed::MultiNodeOptions Processes::multi_node_options() const {
    distributed::MultiNodeOptions options;
    options.bucket_bytes = std::max<std::int64_t>(1, std::llround(bucket_ * 0x1p20));
    if (!wire_.empty()) options.wire = wire_ == "float16" ? Dtype::float16 : Dtype::bfloat16;
    options.double_buffering = double_buffering_;
    options.accumulate = micro_batches() / communicator().size();
    options.shard = shard_ && has_several();
    return options;
}

void Processes::open_checkpoints() {
    checkpoints_.reset();
    if (!checkpoint_.empty())
        checkpoints_.emplace(
            communicator(), checkpoint_,
            distributed::CheckpointOptions{.keep = keep_, .is_local = differs_between_ranks});
}

}  // namespace catena
