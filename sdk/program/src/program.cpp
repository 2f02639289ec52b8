// Program: the common options and what they do.
#include <catena/catena.hpp>
#include <catena/program.hpp>

#include "ranks.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
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

}  // namespace catena
