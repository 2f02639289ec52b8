// Program: the common options and what they do.
#include <catena/catena.hpp>
#include <catena/program.hpp>

#include <dlfcn.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <sstream>

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {
namespace {

constexpr unsigned width = 100;

// Paths with spaces are one value: Boost's own way of reading them stops at the first.
po::typed_value<std::string>* path_value(std::filesystem::path& path) {
    return po::value<std::string>()->value_name("FILE")->notifier(
        [&path](const std::string& text) { path = text; });
}
// The same that may stand without one.
po::typed_value<std::string>* path_value(std::filesystem::path& path, const char* name) {
    return path_value(path)->implicit_value(name);
}

}  // namespace

Program::Program(std::string name, std::string about)
    : name_(std::move(name)),
      about_(std::move(about)),
      own_("options", width),
      training_("snapshots and curves", width) {}
Program::~Program() = default;

void Program::add_training_options() {
    trains_ = true;
    // clang-format off
    training_.add_options()
        ("save", path_value(save_),
         "write a snapshot (.npz or .safetensors) after each epoch, and when interrupted")
        ("save-every", po::value(&save_every_)->value_name("N"), "and after every N steps")
        ("resume", path_value(resume_), "go on from a snapshot of the same options")
        ("curves", path_value(curves_, "curves.csv"),
         "write the numbers of each epoch to a .csv or .jsonl file")
        ("plot", path_value(plot_, "curves.svg"), "and draw them")
        ("graph", path_value(graph_, "graph.svg"),
         "draw the graph of the first step: .dot, or .svg, .png or .pdf by Graphviz");
    // clang-format on
}

bool Program::parse(int argc, char** argv) {
    po::options_description common("options of all programs", width);
    // clang-format off
    common.add_options()
        ("help,h", "this text")
        ("version", "of this program, and of the ABI that it knows")
        ("device", po::value(&device_)->value_name("NAME"),
         several_devices_ ? "such as cpu:0 or cuda:0, or several: cuda:0,cuda:1; without it the first that "
                            "is there"
                          : "such as cpu:0 or cuda:0; without it the first that is there")
        ("threads", po::value(&threads_)->value_name("N"), "without it as many as suit the device")
        ("seed", po::value(&seed_)->value_name("N"),
         "of all random numbers; without it $CATENA_SEED, else 0")
        ("deterministic", po::bool_switch(&deterministic_),
         "the same result for any number of threads")
        ("plugins", po::value(&plugins_)->value_name("DIR"),
         "take plugins from DIR alone; may be given several times")
        ("log-file", path_value(log_file_), "write all lines to FILE as well, with their times")
        ("profile", po::bool_switch(&profiles_), "print at the end which kernels took how long")
        ("trace", path_value(trace_, "trace.json"),
         "write every kernel's run for chrome://tracing and Perfetto");
    // clang-format on
    po::options_description all(fmt::format("usage: {} [OPTION...]\n\n{}", name_, about_), width);
    all.add(own_);
    if (trains_) all.add(training_);
    all.add(common);
    po::store(
        po::command_line_parser(argc, argv)
            .options(all)
            .positional(positional_)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run(),
        values_);
    po::notify(values_);
    if (given("help")) {
        std::cout << all;
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
    }
    require(seed_ >= 0, "seed", "0 or more", seed_);
    require(several_devices_ || device_.find(',') == device_.npos, "device", "one device", device_);
    require(!given("threads") || threads_ >= 1, "threads", "1 or more", threads_);
    require(!given("save-every") || save_every_ >= 1, "save-every", "1 or more", save_every_);
    if (save_every_ > 0 && save_.empty())
        throw po::error("--save-every: expected --save as well, got none");
    return true;
}

Device Program::start(std::initializer_list<std::string_view> functions) {
    global_config().deterministic = config().deterministic = deterministic_;
    if (!save_.empty()) require_writable(save_);
    if (!log_file_.empty()) {
        log_.reset(std::fopen(log_file_.c_str(), "a"));
        if (!log_)
            throw DataError(fmt::format("[Program] {}: expected a file that can be written, got {}",
                                        log_file_.string(), std::strerror(errno)));
    }
    if (!trace_.empty()) require_writable(trace_);
    if (!graph_.empty()) ComputationalGraph::require_savable(graph_);
    if (!plugins_.empty()) {
        disable_default_plugins();
        for (const std::string& folder : plugins_) load_plugins(folder);
    }
    for (const std::string_view function : functions) (void)function_descriptor(function);
    std::istringstream names(device_);
    for (std::string name; std::getline(names, name, ',');) devices_.push_back(Device::get(name));
    if (devices_.empty()) devices_.push_back(Device::current());
    if (threads_ > 0) {
        for (const Device device : devices_) device.set_threads(threads_);
    }
    catena::seed(static_cast<std::uint64_t>(seed_));
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

void Program::resume(Visitable& training) const {
    if (!resume_.empty()) load_snapshot(resume_, training);
}
void Program::save(const Visitable& training) const {
    if (!save_.empty()) save_snapshot(save_, training);
}
void Program::save_after_step(std::int64_t t, const Visitable& training) const {
    if (save_every_ > 0 && t % save_every_ == 0) save(training);
}
int Program::stop(std::string_view where, const Visitable& training) const {
    save(training);
    print(fmt::format("interrupted {}{}", where, save_.empty() ? "" : ", saved " + save_.string()));
    return finish();
}

int Program::finish() const {
    if (profiles_) print(profile_->table());
    if (!trace_.empty()) profile_->write_trace(trace_);
    return interrupted() ? interrupt_.exit_code() : 0;
}

Curves Program::curves(std::vector<std::string> columns, std::int64_t last) const {
    Curves result(std::move(columns), curves_, plot_);
    if (!resume_.empty()) result.resume(static_cast<double>(last));
    return result;
}

std::function<void(const Variable&)> Program::drawing(const Link& link) const {
    if (graph_.empty()) return {};
    return [this, &link](const Variable& loss) {
        build_computational_graph({loss}, &link).save(graph_);
    };
}

void Program::print(std::string_view line) const {
    fmt::print("{}\n", line);
    std::fflush(stdout);
    if (!log_) return;
    const auto now =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    fmt::print(log_.get(), "{:%Y-%m-%dT%H:%M:%SZ}  {}\n", fmt::gmtime(now), line);
    std::fflush(log_.get());
}

void Program::refuse(const char* option, const char* expected, const std::string& got) {
    throw po::error(fmt::format("--{}: expected {}, got {}", option, expected, got));
}
std::string Program::to_text(double value) { return fmt::format("{}", value); }

int run_program(std::string_view name, const std::function<int()>& body) {
    try {
        return body();
    } catch (const po::error& error) {
        fmt::print(stderr, "{}: {}\nTry --help.\n", name, error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return 1;
    }
}

}  // namespace catena
