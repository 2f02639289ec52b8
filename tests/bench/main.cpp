// catena-bench: measures catena and its peers alternately and prints a table of ratios.
//
// The machine's speed changes from minute to minute, so only ratios of times that are measured at the
// same moment are meaningful. Each round measures one block of each side, a few milliseconds apart,
// and the table shows medians over the rounds. Each side runs in its own process (see worker.hpp): in
// one process, OpenMP threads of one side would still spin while the other side is measured, and both
// would share one OpenBLAS. The pause between blocks is longer than the threads of any side spin
// before they sleep. If another program takes a processor from a thread, the threads that wait for it
// at a barrier can become a hundred times slower: such blocks are detected and repeated.
#include "table.hpp"
#include "worker.hpp"

#include <catena/loader/plugins.hpp>

#include <fmt/format.h>
#include <boost/program_options.hpp>
#include <command_line.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <stdexcept>
#include <thread>

namespace catena_bench {
namespace {

constexpr auto pause = std::chrono::milliseconds(10);
// A block is undisturbed if its threads waited for a processor for at most this share of its time.
constexpr double calm = 0.05;
constexpr int most_attempts = 4;

struct Options {
    int rounds = 15;
    int threads = 2;
    double block = 0.03;
    std::string filter;
    std::string json;
    bool torch = true;
    bool onednn = true;
    bool check = false;
};

struct Planned {
    const Comparison* comparison;
    const char* ours;
    const char* theirs;
    std::string work;
    std::optional<double> goal;
    double flops;
};

void set_default(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

// On CPUs that are newer than the library, Debian's OpenBLAS and libtorch select slow kernels. So peers
// are measured with the best kernels for this CPU.
void prepare_peer(int threads) {
    setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        set_default("OPENBLAS_CORETYPE", "SkylakeX");
        set_default("ATEN_CPU_CAPABILITY", "avx512");
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        set_default("OPENBLAS_CORETYPE", "Haswell");
    }
#endif
}

#if defined(CATENA_BENCH_TORCH)
constexpr const char* torch_library = CATENA_BENCH_TORCH;
constexpr const char* torch_name = CATENA_BENCH_TORCH_NAME;
#else
constexpr const char* torch_library = "";
constexpr const char* torch_name = "libtorch";
#endif

// PyTorch in Python, which can also compile functions.
#if defined(CATENA_BENCH_TORCH_PYTHON)
const std::vector<std::string> torch_command = {CATENA_BENCH_TORCH_PYTHON, CATENA_BENCH_TORCH_PEER};
#else
const std::vector<std::string> torch_command;
#endif

std::vector<Work> open_torch(int threads) {
    void* library = dlopen(torch_library, RTLD_NOW | RTLD_LOCAL);
    void* make = library ? dlsym(library, "catena_bench_torch") : nullptr;
    if (!make) throw std::runtime_error(dlerror());
    std::vector<Work> works;
    reinterpret_cast<void (*)(int, std::vector<Work>*)>(make)(threads, &works);
    return works;
}

void load_all_but(const char* module) {
    catena::disable_default_plugins();
    const auto folder = std::filesystem::path(CATENA_BENCH_CPU).parent_path();
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        if (file.path().filename() != module) catena::load_plugin(file.path());
    }
}

std::vector<Planned> make_plan(const Options& options) {
    static const Comparison torch{torch_name, false};
    static const Comparison pytorch{"PyTorch" + std::string(torch_name).substr(8), false};
    static const Comparison python_memory{pytorch.peer, false, true};
    static const Comparison float32{"float32", false, false, "bfloat16"};
    static const Comparison openblas{"OpenBLAS", true};
    static const Comparison torch_memory{torch_name, false, true};
    static const Comparison built_in{"built-in sigmoid", true, false, "third party"};
    static const Comparison in_cpp{"calls in C++", false, false, "composition"};
    static const Comparison composed{"composed", true, false, "formula"};
    static const Comparison fused{"plugin", true, false, "formula"};
    std::vector<Planned> plan;
    const auto against_torch = [&](const char* work, std::optional<double> goal) {
        plan.push_back({&torch, "catena", options.torch ? "libtorch" : "", work, goal, 0});
    };
    against_torch("add, no graph", 0.35);
    against_torch("add, graph", 0.35);
    against_torch("add, forward and backward", 0.30);
    against_torch("MLP step, 100 units", 0.60);
    against_torch("MLP step, 1000 units", 0.80);
    for (const char* work : {"add 1M", "exp 1M", "sigmoid 1M", "relu 1M"}) against_torch(work, 1.0);
    against_torch("tanh 1M", 0.50);
    against_torch("Adam step, 1M parameters", {});
    against_torch("Adam step, 10M parameters", 0.35);
    against_torch("3x3 convolution, both ways", options.onednn ? 1.0 : 2.0);
    against_torch("CNN step", options.onednn ? std::optional(0.80) : std::nullopt);
    for (const char* net : {"NIN step", "AlexNet-BN step", "GoogLeNet step"})
        against_torch(net, options.onednn ? std::optional(1.1) : std::nullopt);
    against_torch("LSTM language model step", options.onednn ? 0.35 : 0.60);
    against_torch("the same, whole texts", 0.90);
    against_torch("LM training, a word", 0.33);
    against_torch("against nn.LSTM", 0.90);
    plan.push_back({&torch_memory, "catena, fresh", options.torch ? "libtorch, fresh" : "",
                    "CNN step, peak memory", 0.90, 0});
    const bool python = options.torch && !torch_command.empty();
    const auto against_python = [&](const std::string& work, double goal) {
        plan.push_back({&pytorch, "functions", python ? "python" : "", work, goal, 0});
    };
    for (const char* work : {"attention, 256 tokens", "attention, 2048 tokens"})
        against_python(work, 0.30);
    for (const char* work :
         {"layer normalization", "GELU 1M", "GELU by tanh 1M", "cross entropy, 50257 classes"})
        against_python(work, 0.60);
    for (const std::string work : {"max", "mean", "argmax", "cumsum"}) {
        for (const char* axis : {", axis 0", ", axis 1"}) against_python(work + axis, 0.80);
    }
    for (const char* work : {"gather 1M rows", "scatter-add 1M rows"}) against_python(work, 0.80);
    against_python("GPT step", 0.40);
    plan.push_back({&python_memory, "functions, fresh", python ? "python, fresh" : "",
                    "GPT step, memory of the process", 0.35, 0});
    plan.push_back({&python_memory,
                    "functions, fresh 2",
                    python ? "python, fresh 2" : "",
                    "GPT step, peak memory",
                    {},
                    0});
    for (const char* work : {"token, 1 thread", "token, 2 threads"}) against_python(work, 0.60);
    plan.push_back({&float32, "bfloat16", "functions", "GPT step", 0.80, 0});
    for (const char* work : {"MLP step, 100 units", "MLP step, 1000 units", "CNN step"})
        plan.push_back({&float32, "bfloat16", "catena", work, 0.80, 0});
    const auto against_built_in = [&](const char* work, std::optional<double> goal) {
        plan.push_back({&built_in, "third party", "built-in", work, goal, 0});
    };
    against_built_in("sigmoid 1M", 0.95);
    against_built_in("sigmoid 1M, both ways", 0.95);
    // A composition is a seventh call, which alone costs a sixth of the others.
    plan.push_back({&in_cpp, "third party", "built-in", "6 calls on 1 element", 1.45, 0});
    plan.push_back(
        {&in_cpp, "third party", "built-in", "6 calls on 1 element, both ways", 1.25, 0});
    against_built_in("swish 1M", 0.95);
    against_built_in("swish 1M, both ways", 0.95);
    against_built_in("swish 16M", 0.95);
    plan.push_back({&composed, "formula", "composed", "muladd of 1", {}, 0});
    plan.push_back({&composed, "formula", "composed", "muladd 1M", 1.5, 0});
    plan.push_back({&composed, "formula", "composed", "muladd 16M", {}, 0});
    plan.push_back({&composed, "formula", "composed", "muladd 1M, by rows", {}, 0});
    plan.push_back({&composed, "formula", "composed", "norm 1M", 1.8, 0});
    plan.push_back({&composed, "formula", "composed", "norm 1M, by rows", 1.8, 0});
    plan.push_back({&fused, "formula", "fused", "muladd of 1", {}, 0});
    plan.push_back({&fused, "formula", "fused", "muladd 1M", 0.91, 0});
    for (const Product& p : products) {
        const bool square = p.m == p.n && p.n == p.k && p.m >= 512;
        plan.push_back({&openblas, "blas", "openblas", p.name,
                        square ? std::optional(0.95) : std::nullopt, 2.0 * p.m * p.n * p.k});
    }
    const std::regex wanted(options.filter, std::regex::icase);
    std::erase_if(plan, [&](const Planned& p) { return !std::regex_search(p.work, wanted); });
    return plan;
}

// Measures up to most_attempts blocks until one is undisturbed. Returns the least disturbed one.
Block measure_block(Worker& worker, const std::string& work) {
    Block best{0, std::numeric_limits<double>::infinity(), {}};
    for (int attempt = 0; attempt < most_attempts && best.waiting > calm; ++attempt) {
        const Block block = worker.measure(work);
        if (block.waiting < best.waiting) best = block;
        std::this_thread::sleep_for(pause);
    }
    return best;
}

struct SideResult {
    std::string name;
    std::vector<double>* seconds;
    int disturbed = 0;
};

Result measure(const Planned& planned, std::map<std::string, Worker>& workers, int rounds) {
    const bool memory = planned.comparison->memory;
    if (memory) rounds = 1;  // later rounds would reuse memory allocated by the first
    Result result{planned.comparison, planned.work, planned.goal, planned.flops, {}, {}, {}, {}};
    std::vector<SideResult> sides{{planned.ours, &result.ours}};
    if (*planned.theirs) sides.push_back({planned.theirs, &result.theirs});
    for (int round = 0; round < rounds; ++round) {
        std::erase_if(sides, [&](SideResult& side) {
            try {
                Worker& worker = workers.at(side.name);
                if (round == 0 && !memory) worker.measure(planned.work);  // warms up
                const Block block =
                    memory ? worker.measure(planned.work) : measure_block(worker, planned.work);
                side.seconds->push_back(block.seconds);
                if (side.seconds == &result.theirs) result.way = block.way;
                side.disturbed += block.waiting > calm ? 1 : 0;
                return false;
            } catch (const std::exception& error) {
                result.failure += fmt::format("{}: {}\n", side.name, error.what());
                side.seconds->clear();
                return true;
            }
        });
        std::reverse(sides.begin(), sides.end());
    }
    for (const SideResult& side : sides) {
        result.disturbed = result.disturbed || side.disturbed > rounds / 2;
    }
    return result;
}

int run(const Options& options) {
    const std::vector<Planned> plan = make_plan(options);
    const auto prepare_catena = [&] {
        if (!options.onednn) load_all_but("onednn.catena");
    };
    const auto prepare_torch = [&] { prepare_peer(options.threads); };
    const auto by = [&](MakeWorks make, std::function<void()> prepare) {
        return serve(std::move(prepare), make, options.threads, options.block);
    };
    const auto by_python = [&] {
        return serve_by_program(prepare_torch, torch_command, options.threads, options.block);
    };
    const std::map<std::string, Serve> known{
        {"catena", by(catena_works, prepare_catena)},
        {"catena, fresh", by(catena_works, prepare_catena)},
        {"functions", by(function_works, prepare_catena)},
        {"functions, fresh", by(function_works, prepare_catena)},
        {"functions, fresh 2", by(function_works, prepare_catena)},
        {"bfloat16", by(bfloat16_works, prepare_catena)},
        {"third party", by(third_party_works, prepare_catena)},
        {"built-in", by(built_in_works, prepare_catena)},
        {"formula", by(formula_works, prepare_catena)},
        {"composed", by(composed_works, prepare_catena)},
        {"fused", by(fused_works, prepare_catena)},
        {"blas", by(extension_works, [] {})},
        {"openblas", by(openblas_works, prepare_torch)},
        {"libtorch", by(open_torch, prepare_torch)},
        {"libtorch, fresh", by(open_torch, prepare_torch)},
        {"python", by_python()},
        {"python, fresh", by_python()},
        {"python, fresh 2", by_python()},
    };
    std::map<std::string, Worker> workers;
    for (const Planned& planned : plan) {
        for (const std::string side : {planned.ours, planned.theirs}) {
            if (!side.empty() && !workers.contains(side)) workers.emplace(side, known.at(side));
        }
    }
    const bool progress = isatty(STDERR_FILENO) != 0;
    std::vector<Result> results;
    for (const Planned& planned : plan) {
        if (progress) {
            fmt::print(stderr, "\r\033[K{}/{} {}", results.size() + 1, plan.size(), planned.work);
        }
        results.push_back(measure(planned, workers, options.rounds));
    }
    if (progress) fmt::print(stderr, "\r\033[K");
    fmt::print("{}", to_table(results));
    if (std::any_of(results.begin(), results.end(), [](const Result& r) { return r.disturbed; })) {
        fmt::print(stderr, "disturbed: other programs used the processors; measure again\n");
    }
    bool ok = true;
    for (const Result& result : results) {
        if (!result.failure.empty()) fmt::print(stderr, "{}: {}", result.work, result.failure);
        ok = ok && (options.check ? result.ok() : result.failure.empty());
    }
    if (!options.json.empty()) {
        std::ofstream file(options.json);
        file << to_json(results, options.threads, options.block);
        if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
    }
    return ok ? 0 : 1;
}

}  // namespace
}  // namespace catena_bench

int main(int argc, char** argv) {
    return catena::run_command(
        "catena-bench",
        [&] {
            namespace po = boost::program_options;
            catena_bench::Options options;
            po::options_description description(
                "usage: catena-bench [OPTION...]\n\nCompares the speed of catena and its "
                "peers.\n\nOptions");
            auto add = description.add_options();
            add("help,h", "print this text");
            add("filter", po::value(&options.filter),
                "measure only benchmarks whose name matches this regex");
            add("rounds", po::value(&options.rounds)->default_value(options.rounds),
                "blocks to measure on each side of a benchmark");
            add("block", po::value(&options.block)->default_value(options.block, "0.03"),
                "duration of one block in seconds");
            add("threads", po::value(&options.threads)->default_value(options.threads),
                "number of threads of each side");
            add("json", po::value(&options.json), "write all results to this JSON file");
            add("no-torch", "do not measure libtorch");
            add("no-onednn", "do not load catena's oneDNN plugin");
            add("check", "exit with 1 if a goal is missed");
            const po::variables_map given = catena::parse_command_line(argc, argv, description);
            if (given.count("help")) {
                std::cout << description;
                return 0;
            }
            options.torch = !given.count("no-torch") && *catena_bench::torch_library;
            options.onednn = !given.count("no-onednn");
            options.check = given.count("check") > 0;
            if (options.rounds < 1 || options.threads < 1 || !(options.block > 0)) {
                throw po::error("--rounds, --threads, --block: expected positive numbers");
            }
            return catena_bench::run(options);
        },
        2);
}
