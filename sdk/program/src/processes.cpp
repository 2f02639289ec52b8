// Programs in several processes: the communicator, checkpoints, and who prints.
#include "processes.hpp"

#include <catena/core/device.hpp>
#include <catena/fail.hpp>
#include <catena/program.hpp>
#include <catena/serializer.hpp>

#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {

using distributed::Checkpoints;
using distributed::Communicator;

namespace {

constexpr double most_bucket = 1 << 20;  // MiB

// Outlives Program, because run_program() tells the other processes how the program ended.
Communicator& the_communicator() {
    static Communicator communicator;
    return communicator;
}

bool is_local(std::string_view name) {
    return name.starts_with("random") || name.starts_with("score");
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

int threads_of_process(int threads, std::span<const std::string> places, int rank) {
    const auto sharing = std::ranges::count(places, places[static_cast<std::size_t>(rank)]);
    return std::max(1, threads / static_cast<int>(sharing));
}

void abort_processes(std::string_view reason) noexcept { the_communicator().abort(reason); }

void close_communicator() { the_communicator() = Communicator(); }

const Communicator& Program::communicator() const { return the_communicator(); }

void Program::require_process_options() const {
    for (const char* option : {"timeout", "shard", "wire", "bucket", "double-buffering"})
        if (trains_) require_with(option, "communicator");
    if (given("timeout")) require_positive("timeout", timeout_);
    require(wire_.empty() || wire_ == "float16" || wire_ == "bfloat16", "wire",
            "float16 or bfloat16", wire_);
    require_positive("bucket", bucket_);
    require(bucket_ <= most_bucket, "bucket", fmt::format("up to {} MiB", most_bucket).c_str(),
            bucket_);
    require_with("keep", "checkpoint");
    require_at_least("keep", keep_, 1);
    if (given("micro-batches")) require_at_least("micro-batches", micro_batches_, 1);
    for (const char* option : {"communicator", "micro-batches"})
        require(!trains_ || !given(option) || device_.find(',') == device_.npos, "device",
                fmt::format("one with --{}", option).c_str(), device_);
}

void Program::open_communicator() {
    the_communicator() =
        Communicator::open(communicator_, {.device = devices_[0], .timeout = timeout_});
    const int size = communicator().size();
    require(size > 1 || launched() <= 1, "communicator",
            fmt::format("one that joins the {} processes of the launcher, such as mpi", launched())
                .c_str(),
            communicator_ + ", whose group has one");
    require(micro_batches() % size == 0, "micro-batches",
            fmt::format("a multiple of {} processes", size).c_str(), micro_batches_);
}

// Without --threads, processes that may use the same processors divide them.
void Program::set_threads() const {
    std::vector<std::string> places{""};
    if (has_several()) places = communicator().allgather_text(processors());
    for (const Device device : devices_) {
        if (threads_ > 0) device.set_threads(threads_);
        else if (has_several())
            device.set_threads(threads_of_process(device.threads(), places, communicator().rank()));
    }
}

std::int64_t Program::micro_batches() const {
    return micro_batches_ > 0 ? micro_batches_ : communicator().size();
}

distributed::MultiNodeOptions Program::multi_node_options() const {
    distributed::MultiNodeOptions options;
    options.bucket_bytes = std::max<std::int64_t>(1, std::llround(bucket_ * 0x1p20));
    if (!wire_.empty()) options.wire = wire_ == "float16" ? Dtype::float16 : Dtype::bfloat16;
    options.double_buffering = double_buffering_;
    options.accumulate = micro_batches() / communicator().size();
    options.shard = shard_ && has_several();
    return options;
}

// ---- snapshots and checkpoints

void Program::open_checkpoints() {
    checkpoints_.reset();
    if (!checkpoint_.empty())
        checkpoints_.emplace(communicator(), checkpoint_,
                             distributed::CheckpointOptions{.keep = keep_, .is_local = is_local});
}

void Program::resume(Visitable& training) {
    resumed_ = true;
    if (checkpoints_ && checkpoints_->resume(training)) return;
    resumed_ = !resume_.empty();
    if (!resumed_) return;
    if (is_first()) return load_snapshot(resume_, training);
    // The scores of all processes are in the snapshot: only one may count them.
    const auto others = [](const std::string& name) {
        return name.starts_with("score") ? std::string() : name;
    };
    load_snapshot(resume_, training, {.path = {}, .rename = others, .strict = false});
    for (const Device device : Device::opened()) {  // the snapshot has those of rank 0
        RandomState state = random_state(device);
        state.seed = stream_of_rank(state.seed, communicator().rank());
        set_random_state(device, state);
    }
}

void Program::save(std::int64_t t, const Visitable& training) const {
    if (!save_.empty()) distributed::save_snapshot(communicator(), save_, training);
    if (checkpoints_) checkpoints_->save(t, training);
}

void Program::save_after_step(std::int64_t t, const Visitable& training) const {
    if (save_every_ > 0 && t % save_every_ == 0) save(t, training);
}

int Program::stop(std::string_view where, std::int64_t t, const Visitable& training) const {
    save(t, training);
    const fs::path& place = save_.empty() ? checkpoint_ : save_;
    print(fmt::format("interrupted {}{}", where, place.empty() ? "" : ", saved " + place.string()));
    const int code = finish();
    return code == 0 ? 1 : code;  // another process was interrupted
}

void Program::stop_if_interrupted() const {
    if (interrupted() && !has_several()) throw Interrupted(interrupt_.exit_code());
}

}  // namespace catena
