// Program: the common options and what they do. Output: stdout and the log. run_program(): errors as
// text and exit codes.
#include <catena/catena.hpp>
#include <catena/fail.hpp>
#include <catena/program.hpp>

#include "ranks.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <command_line.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {
namespace {

// The time to end by itself after a signal. Tests set CATENA_TEST_GRACE, in milliseconds, because
// their outcome may not depend on the speed of the machine.
std::chrono::milliseconds grace(std::chrono::milliseconds usual) {
    const char* text = std::getenv("CATENA_TEST_GRACE");
    return text ? std::chrono::milliseconds(std::atoll(text)) : usual;
}

}  // namespace

Program::Program(std::string name, std::string about)
    : options(std::move(name), std::move(about)),
      interrupt_(grace(std::chrono::milliseconds(1500)), grace(std::chrono::minutes(1))) {}

void Program::add_training_options() {
    trains_ = true;
    ProgramOptions::Group& group = options.add_group("snapshots and curves");
    snapshots.add_to(group);
    reports.add_to(options, group);
    processes.add_to(options);
}

bool Program::parse(int argc, char** argv) {
    // clang-format off
    options.add_group("options of all programs").add_options()
        ("help,h", "print this text")
        ("version", "print the versions of this program and of its ABI")
        ("device", options.per_process(po::value(&device_)->value_name("NAME")),
         several_devices_ ? "such as cpu:0 or cuda:0, or several: cuda:0,cuda:1; default: the first device"
                          : "such as cpu:0 or cuda:0; default: the first device")
        ("threads", options.per_process(po::value(&threads_)->value_name("N")), "number of threads; default: chosen by the device")
        ("seed", po::value(&seed_)->value_name("N"),
         "seed of all random numbers; default: $CATENA_SEED, or 0")
        ("deterministic", po::bool_switch(&deterministic_),
         "give the same result for any number of threads")
        ("plugins", options.per_process(po::value(&plugins_)->value_name("DIR")),
         "load plugins only from DIR; may be repeated")
        ("log-file", options.per_process(options.path(output.log_file_)), "append all lines to FILE too, with timestamps")
        ("profile", options.per_process(po::bool_switch(&profiles_)), "at the end, print the time of each kernel")
        ("trace", options.per_process(options.path(trace_)->implicit_value("trace.json")),
         "write a trace of all kernels for chrome://tracing and Perfetto");
    // clang-format on
    if (!options.parse(argc, argv, CATENA_VERSION ", ABI " CATENA_ABI_VERSION)) return false;
    if (!options.given("seed")) {
        const std::uint64_t initial = initial_seed();
        seed_ = static_cast<std::int64_t>(initial);
        options.require(seed_ >= 0, "seed", "at most 2^63 - 1 in CATENA_SEED", initial);
        options.set_default("seed", seed_);
    }
    options.require_at_least("seed", seed_, 0);
    options.require(!options.given("device") || device_.find_first_not_of(',') != device_.npos,
                    "device", "a name", device_);
    const bool several = device_.find(',') != device_.npos;
    options.require(several_devices_ || !several, "device", "one device", device_);
    if (options.given("threads")) options.require_at_least("threads", threads_, 1);
    if (!trains_) return true;
    snapshots.check(options);
    reports.check(options);
    processes.check(options);
    for (const char* option : {"communicator", "micro-batches"})
        options.require(!options.given(option) || !several, "device",
                        fmt::format("one with --{}", option).c_str(), device_);
    return true;
}

Device Program::start(std::initializer_list<std::string_view> functions) {
    global_config().deterministic = config().deterministic = deterministic_;
    output.open_log();
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
        options.require(std::ranges::count(devices_, device) == 0, "device", "each device once",
                        device_);
        devices_.push_back(device);
    }
    if (devices_.empty()) devices_.push_back(Device::current());
    processes.open(devices_[0]);
    processes.require_equal(options);
    for (const fs::path& file : {snapshots.save_, trace_, reports.curves_, reports.plot_}) {
        if (!file.empty() && processes.is_first()) require_writable(file);
    }
    if (!reports.graph_.empty() && processes.is_first())
        ComputationalGraph::require_savable(reports.graph_);
    processes.open_checkpoints();
    processes.set_threads(devices_, threads_);
    catena::seed(
        stream_of_rank(static_cast<std::uint64_t>(seed_), processes.communicator().rank()));
    if (profiles_ || !trace_.empty()) profile_ = std::make_unique<Profile>();
    return devices_[0];
}

std::filesystem::path shipped(std::string_view name) {
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
    if (!trace_.empty() && processes.is_first()) profile_->write_trace(trace_);
    return interrupted() ? interrupt_.exit_code() : 0;
}

int Program::stop(std::string_view where, std::int64_t t, const Visitable& training) const {
    snapshots.save(t, training);
    const fs::path& place = snapshots.save_.empty() ? processes.checkpoint_ : snapshots.save_;
    print(fmt::format("interrupted {}{}", where, place.empty() ? "" : ", saved " + place.string()));
    const int code = finish();
    return code == 0 ? 1 : code;  // another process was interrupted
}

void Program::stop_if_interrupted() const {
    if (interrupted() && !processes.has_several()) throw Interrupted(interrupt_.exit_code());
}

// ---- Output and run_program()

namespace {

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

void require_written(bool written, const std::string& where) {
    if (!written)
        fail<DataError>("[Program] {}: expected to write a line, got {}", where,
                        std::strerror(errno));
}

}  // namespace

void Output::open_log() const {
    log_file().reset();
    if (log_file_.empty()) return;
    // In a folder that others can write to, a link may belong to another user.
    const int fd =
        ::open(log_file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0) log_file().reset(fdopen(fd, "a"));
    if (!log_file())
        fail<DataError>("[Program] {}: expected a file that can be written, got {}",
                        log_file_.string(),
                        errno == ELOOP ? "a symbolic link" : std::strerror(errno));
}

void Output::print(std::string_view line) const {
    log(line);
    write(fmt::format("{}\n", line));
}
void Output::write(std::string_view text) const {
    if (!processes_.is_first()) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    require_written(std::fflush(stdout) == 0, "stdout");
}
void Output::log(std::string_view line) const {
    if (!processes_.is_first()) return;
    require_written(log_line(line), log_file_.string());
}

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
