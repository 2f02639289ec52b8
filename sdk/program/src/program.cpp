// Program: the common options and what they do.
#include <catena/catena.hpp>
#include <catena/fail.hpp>
#include <catena/program.hpp>

#include "processes.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <boost/algorithm/string/case_conv.hpp>
#include <command_line.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {
namespace {

constexpr unsigned width = 100;

// The time to end by itself after a signal. Tests set CATENA_TEST_GRACE, in milliseconds, because
// their outcome may not depend on the speed of the machine.
std::chrono::milliseconds grace(std::chrono::milliseconds usual) {
    const char* text = std::getenv("CATENA_TEST_GRACE");
    return text ? std::chrono::milliseconds(std::atoll(text)) : usual;
}

// --log-file outlives Program, because run_program() still logs how the program ended.
auto& log_file() {
    static std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(nullptr, std::fclose);
    return file;
}

// Returns false with errno set if the line could not be written.
bool log_line(std::string_view line) {
    std::FILE* file = log_file().get();
    if (!file) return true;
    const auto now =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    std::fputs(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}  {}\n", fmt::gmtime(now), line).c_str(), file);
    return std::fflush(file) == 0;
}

}  // namespace

Program::Program(std::string name, std::string about)
    : interrupt_(grace(std::chrono::milliseconds(1500)), grace(std::chrono::minutes(1))),
      name_(std::move(name)),
      about_(std::move(about)),
      own_("options", width),
      training_("snapshots and curves", width),
      processes_("several processes", width),
      common_("options of all programs", width) {}

// Boost would read a path only up to its first space.
po::typed_value<std::string>* Program::path(std::filesystem::path& variable, const char* name) {
    return po::value<std::string>()->value_name(name)->notifier(
        [&variable](const std::string& text) { variable = text; });
}

// "usage: NAME [OPTION...] [DIR]" and a description of the program.
std::string Program::usage() const {
    std::string inputs;
    if (const unsigned most = positional_.max_total_count(); most > 0) {
        const std::string name = boost::to_upper_copy(positional_.name_for_position(0));
        inputs = fmt::format(" [{}{}]", name, most > 1 ? "..." : "");
    }
    return fmt::format("usage: {} [OPTION...]{}\n\n{}\n", name_, inputs, about_);
}

void Program::add_training_options() {
    trains_ = true;
    // clang-format off
    training_.add_options()
        ("save", path(save_),
         "write a snapshot after each epoch and on interruption, as .npz, or as .safetensors if FILE ends "
         "so; after SIGTERM the program exits within 1.5 s, after SIGHUP within a minute, after a second "
         "Ctrl-C or SIGTERM immediately; if the new snapshot is not complete by then, FILE keeps the "
         "previous one")
        ("save-every", po::value(&save_every_)->value_name("N"), "also save a snapshot every N steps")
        ("resume", path(resume_), "resume from a snapshot with the same options")
        ("curves", per_process(path(curves_)->implicit_value("curves.csv")),
         "write the results of each epoch to a .csv or .jsonl file")
        ("plot", per_process(path(plot_)->implicit_value("curves.svg")), "plot the results of each epoch")
        ("graph", per_process(path(graph_)->implicit_value("graph.svg")),
         "draw the graph of the first step: .dot, or with Graphviz .svg, .png or .pdf");
    processes_.add_options()
        ("communicator", po::value(&communicator_)->value_name("NAME"),
         "train in several processes, which divide each minibatch: mpi (mpirun -n 4 ...), nccl for GPUs")
        ("timeout", po::value(&timeout_)->value_name("SECONDS"),
         "how long to wait for other processes; default: $CATENA_COMMUNICATOR_TIMEOUT, or 300")
        ("checkpoint", path(checkpoint_, "FOLDER"),
         "write a checkpoint when --save would write a snapshot; start from the newest complete one")
        ("keep", value(keep_), "how many checkpoints to keep")
        ("shard", po::bool_switch(&shard_),
         "divide the optimizer's state among the processes (ZeRO stage 1)")
        ("wire", po::value(&wire_)->value_name("DTYPE"),
         "send gradients in float16 or bfloat16; default: the dtype of the parameters")
        ("bucket", value(bucket_), "send gradients in buckets of this many MiB")
        ("double-buffering", po::bool_switch(&double_buffering_),
         "send gradients during the next step, which uses those of the previous one")
        ("micro-batches", po::value(&micro_batches_)->value_name("N"),
         "divide each minibatch into N parts, whose gradients are added up, in pairs with --deterministic: "
         "then the result is the same for each number of processes that divides N; default: one part for "
         "each process");
    // clang-format on
}

bool Program::parse(int argc, char** argv) {
    // clang-format off
    common_.add_options()
        ("help,h", "print this text")
        ("version", "print the versions of this program and of its ABI")
        ("device", per_process(po::value(&device_)->value_name("NAME")),
         several_devices_ ? "such as cpu:0 or cuda:0, or several: cuda:0,cuda:1; default: the first device"
                          : "such as cpu:0 or cuda:0; default: the first device")
        ("threads", per_process(po::value(&threads_)->value_name("N")), "number of threads; default: chosen by the device")
        ("seed", po::value(&seed_)->value_name("N"),
         "seed of all random numbers; default: $CATENA_SEED, or 0")
        ("deterministic", po::bool_switch(&deterministic_),
         "give the same result for any number of threads")
        ("plugins", per_process(po::value(&plugins_)->value_name("DIR")),
         "load plugins only from DIR; may be repeated")
        ("log-file", per_process(path(log_file_)), "append all lines to FILE too, with timestamps")
        ("profile", per_process(po::bool_switch(&profiles_)), "at the end, print the time of each kernel")
        ("trace", per_process(path(trace_)->implicit_value("trace.json")),
         "write a trace of all kernels for chrome://tracing and Perfetto");
    // clang-format on
    po::options_description all(width);
    all.add(own_);
    if (trains_) all.add(training_).add(processes_);
    all.add(common_);
    values_ = parse_command_line(
        argc, argv, all, positional_,
        po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
    if (given("help")) {
        std::cout << usage() << all;
        return false;
    }
    if (given("version")) {
        std::cout << name_ << " " CATENA_VERSION ", ABI " CATENA_ABI_VERSION "\n";
        return false;
    }
    if (!given("seed")) {
        const std::uint64_t initial = initial_seed();
        seed_ = static_cast<std::int64_t>(initial);
        require(seed_ >= 0, "seed", "at most 2^63 - 1 in CATENA_SEED", initial);
        static_cast<std::map<std::string, po::variable_value>&>(values_)["seed"] =
            po::variable_value(seed_, /*defaulted=*/true);
    }
    require_options();
    return true;
}

void Program::require_options() const {
    require_at_least("seed", seed_, 0);
    require(!given("device") || device_.find_first_not_of(',') != device_.npos, "device", "a name",
            device_);
    require(several_devices_ || device_.find(',') == device_.npos, "device", "one device", device_);
    if (given("threads")) require_at_least("threads", threads_, 1);
    if (given("save-every")) {
        require_at_least("save-every", save_every_, 1);
        if (!given("checkpoint")) require_with("save-every", "save");
    }
    const fs::path table = curves_.extension(), plot = plot_.extension();
    require(curves_.empty() || table == ".csv" || table == ".jsonl", "curves",
            "a name that ends in .csv or .jsonl", curves_);
    require(plot_.empty() || plot == ".svg", "plot", "a name that ends in .svg", plot_);
    require_process_options();
    // A resumed run draws the whole plot again from the table.
    if (given("resume")) require_with("plot", "curves");
}

Device Program::start(std::initializer_list<std::string_view> functions) {
    global_config().deterministic = config().deterministic = deterministic_;
    log_file().reset();
    if (!log_file_.empty()) {
        // In a folder that others can write to, a link may belong to another user.
        const int fd =
            ::open(log_file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0) log_file().reset(fdopen(fd, "a"));
        if (!log_file())
            fail<DataError>("[Program] {}: expected a file that can be written, got {}",
                            log_file_.string(),
                            errno == ELOOP ? "a symbolic link" : std::strerror(errno));
    }
    if (!plugins_.empty()) {
        disable_default_plugins();
        for (const std::string& folder : plugins_) load_plugins(folder);
    }
    for (const std::string_view function : functions) (void)function_descriptor(function);
    std::istringstream names(device_of_rank(device_));
    for (std::string name; std::getline(names, name, ',');) {
        if (name.empty()) continue;
        const Device device = Device::get(name);
        // Two replicas on one device would share its random stream, in no fixed order.
        require(std::ranges::count(devices_, device) == 0, "device", "each device once", device_);
        devices_.push_back(device);
    }
    if (devices_.empty()) devices_.push_back(Device::current());
    close_communicator();
    if (!communicator_.empty()) open_communicator();
    require_equal_options();
    for (const fs::path& file : {save_, trace_, curves_, plot_}) {
        if (!file.empty() && is_first()) require_writable(file);
    }
    if (!graph_.empty() && is_first()) ComputationalGraph::require_savable(graph_);
    open_checkpoints();
    set_threads();
    catena::seed(stream_of_rank(static_cast<std::uint64_t>(seed_), communicator().rank()));
    if (profiles_ || !trace_.empty()) profile_ = std::make_unique<Profile>();
    return devices_[0];
}

std::filesystem::path Program::shipped(std::string_view name) {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&run_program), &info);
    const fs::path library = fs::canonical(info.dli_fname);
    const fs::path within = fs::path("share/catena") / name;
    for (fs::path above = library.parent_path(); above != above.root_path();) {
        above = above.parent_path();  // PREFIX of PREFIX/lib, or of PREFIX/lib/x86_64-linux-gnu
        if (fs::exists(above / within)) return fs::canonical(above / within);
    }
    return library.parent_path().parent_path() / within;
}

int Program::finish() const {
    if (profiles_) print(profile_->table());
    if (!trace_.empty() && is_first()) profile_->write_trace(trace_);
    return interrupted() ? interrupt_.exit_code() : 0;
}

Curves Program::curves(std::vector<std::string> columns, std::int64_t last) const {
    if (!is_first()) return Curves(std::move(columns), {});
    Curves result(std::move(columns), curves_, plot_);
    if (resumed_) result.resume(static_cast<double>(last));
    return result;
}

std::function<void(const Variable&)> Program::drawing(const Link& link) const {
    if (graph_.empty() || !is_first()) return {};
    return [this, &link](const Variable& loss) {
        build_computational_graph({loss}, &link).save(graph_);
    };
}

namespace {

void require_written(bool written, const std::string& where) {
    if (!written)
        fail<DataError>("[Program] {}: expected to write a line, got {}", where,
                        std::strerror(errno));
}

}  // namespace

void Program::print(std::string_view line) const {
    log(line);
    write(fmt::format("{}\n", line));
}
void Program::write(std::string_view text) const {
    if (!is_first()) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    require_written(std::fflush(stdout) == 0, "stdout");
}
void Program::log(std::string_view line) const {
    if (!is_first()) return;
    require_written(log_line(line), log_file_.string());
}

void Program::require_finite(double loss) {
    if (!std::isfinite(loss))
        fail<DataError>(
            "[Program] loss: expected a finite number, got {}: the rate may be too high", loss);
}

void Program::require_at_least(const char* option, std::int64_t value, std::int64_t least) {
    if (value < least) refuse(option, fmt::format("{} or more", least), to_text(value));
}
void Program::require_at_least(std::int64_t least, Numbers options) {
    for (const auto& [option, value] : options) require_at_least(option, value, least);
}
void Program::require_positive(const char* option, double value) {
    require(std::isfinite(value) && value > 0, option, "a number above 0", value);
}
void Program::require_with(const char* option, const char* other) const {
    if (given(option) && !given(other)) refuse(option, fmt::format("--{} as well", other), "none");
}
void Program::require_without(const char* option, const char* other) const {
    if (given(option) && given(other)) refuse(option, fmt::format("no --{}", other), "both");
}

void Program::refuse(std::string_view option, std::string_view expected, const std::string& got) {
    throw po::error(fmt::format("--{}: expected {}, got {}", option, expected, got));
}
std::string Program::to_text(double value) { return fmt::format("{}", value); }

int run_program(std::string_view name, const std::function<int()>& body) {
    const auto until_interrupted = [&]() -> int {
        try {
            return body();
        } catch (const Interrupted& interrupt) {
            std::fputs(fmt::format("{}: {}\n", name, interrupt.what()).c_str(), stderr);
            log_line(interrupt.what());
            return interrupt.code;
        } catch (const po::error& error) {
            throw po::error(named_by_rank(error.what()));
        } catch (const MemoryError& error) {
            throw Error(named_by_rank(short_of_memory(error.what())));
        } catch (const std::bad_alloc&) {
            throw Error(named_by_rank(short_of_memory("too little")));
        } catch (const Error& error) {
            abort_processes(error.what());  // which names the rank itself
            throw Error(named_by_rank(error.what()));
        } catch (const fs::filesystem_error& error) {
            throw Error(named_by_rank(error.what()));
        }
    };
    const int code = run_command(name, until_interrupted, 1, [](std::string_view what) {
        log_line(what);
        abort_processes(what);
    });
    close_communicator();
    return code;
}

}  // namespace catena
