// Programs in several processes: the communicator, checkpoints, and who prints.
#include "processes.hpp"

#include <catena/core/device.hpp>
#include <catena/fail.hpp>
#include <catena/program.hpp>
#include <catena/serializer.hpp>

#include <unistd.h>

#include <cstdlib>

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {

using distributed::Checkpoints;
using distributed::Communicator;

namespace {

// Outlives Program, because run_program() tells the other processes how the program ended.
Communicator& the_communicator() {
    static Communicator communicator;
    return communicator;
}

bool is_local(std::string_view name) {
    return name.starts_with("random") || name.starts_with("score");
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
    require(micro_batches() % size == 0, "micro-batches",
            fmt::format("a multiple of {} processes", size).c_str(), micro_batches_);
}

// Without --threads, the processes of a machine divide its processors, unless the launcher has.
void Program::share_processors() const {
    const int ranks = communicator().local_size();
    for (const Device device : devices_) {
        const int threads = device.threads();
        if (ranks > 1 && threads == sysconf(_SC_NPROCESSORS_ONLN))
            device.set_threads(std::max(1, threads / ranks));
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
    options.shard = shard_;
    return options;
}

// ---- snapshots and checkpoints

Checkpoints Program::checkpoints() const {
    return {communicator(), checkpoint_, {.keep = keep_, .is_local = is_local}};
}

void Program::resume(Visitable& training) const {
    if (!checkpoint_.empty() && checkpoints().resume(training)) return;
    if (resume_.empty()) return;
    load_snapshot(resume_, training);
    if (communicator().rank() == 0) return;
    for (const Device device : Device::opened()) {  // the snapshot has those of rank 0
        RandomState state = random_state(device);
        state.seed = stream_of_rank(state.seed, communicator().rank());
        set_random_state(device, state);
    }
}

void Program::save(std::int64_t t, const Visitable& training) const {
    if (!save_.empty() && !has_several()) save_snapshot(save_, training);
    if (!save_.empty() && has_several()) {  // the parts are joined
        const fs::path folder = save_.string() + ".parts";
        const Checkpoints parts(communicator(), folder, {.keep = 1, .is_local = is_local});
        parts.save(t, training);
        parts.join(t, save_);
    }
    if (!checkpoint_.empty()) checkpoints().save(t, training);
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
