// Programs in several processes: the communicator, checkpoints, and who prints.
#include "processes.hpp"

#include <catena/core/device.hpp>
#include <catena/core/tables.hpp>
#include <catena/fail.hpp>
#include <catena/program.hpp>
#include <catena/serializer.hpp>

#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

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

namespace {

// The text of one value, for comparison and for messages.
std::string text_of(const std::string& option, const boost::any& value) {
    if (const auto* texts = boost::any_cast<std::vector<std::string>>(&value))
        return fmt::format("{}", fmt::join(*texts, " "));
    std::optional<std::string> text;
    const auto read = [&]<class... T>(std::type_identity<T>...) {
        (..., [&] {
            if (const T* typed = boost::any_cast<T>(&value)) text = fmt::format("{}", *typed);
        }());
    };
    read(std::type_identity<std::string>(), std::type_identity<bool>(), std::type_identity<int>(),
         std::type_identity<long>(), std::type_identity<long long>(),
         std::type_identity<unsigned>(), std::type_identity<unsigned long>(),
         std::type_identity<unsigned long long>(), std::type_identity<float>(),
         std::type_identity<double>());
    if (text) return *text;
    fail<InvalidError>(
        "[Program] --{}: expected a number, a bool, a text or a list of texts, which start() "
        "compares between processes, or an option of per_process(), got another type",
        option);
}

}  // namespace

std::string difference_between_ranks(const Communicator& communicator,
                                     const std::map<std::string, std::string>& values) {
    using Values = std::map<std::string, std::string>;
    std::string own;  // names and values, each with a null character behind it
    for (const auto& [name, value] : values) own += name + '\0' + value + '\0';
    std::vector<Values> all;
    for (std::string_view text : communicator.allgather_text(own)) {
        const auto next = [&] {
            const std::string_view word = text.substr(0, text.find('\0'));
            text.remove_prefix(word.size() + 1);
            return std::string(word);
        };
        all.emplace_back();
        while (!text.empty()) {
            const std::string name = next();
            all.back()[name] = next();
        }
    }
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

void Program::require_equal_options() const {
    if (!has_several()) return;
    std::map<std::string, std::string> values;
    for (const auto* group : {&own_, &training_, &processes_, &common_}) {
        for (const auto& option : group->options()) {
            const std::string& name = option->long_name();
            if (per_process_.contains(option->semantic().get()) || values_.count(name) == 0)
                continue;
            values["--" + name] = text_of(name, values_[name].value());
        }
    }
    const std::string different = difference_between_ranks(communicator(), values);
    if (different.empty()) return;
    close_communicator();  // all processes throw the same error, so none has to abort the others
    throw po::error(different);
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
        checkpoints_.emplace(
            communicator(), checkpoint_,
            distributed::CheckpointOptions{.keep = keep_, .is_local = differs_between_ranks});
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
