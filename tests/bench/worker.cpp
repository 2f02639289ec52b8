// Workers: forked processes that get requests through pipes and measure by Google Benchmark.
#include "worker.hpp"

#include "table.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace catena_bench {
namespace {

// Returns how long this process's threads have been ready without a processor. 0 if the system does
// not count it.
double waited_seconds() {
    double nanoseconds = 0;
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
        std::ifstream file(task.path() / "schedstat");
        double ran = 0;
        double waited = 0;
        if (file >> ran >> waited) nanoseconds += waited;
    }
    return nanoseconds * 1e-9;
}

// Suppresses Google Benchmark's output: the parent process prints the results.
class Silent : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>&) override {}
};

// Returns the bytes of resident memory, with or without those that are shared with files.
double resident_memory(bool with_files) {
    std::ifstream file("/proc/self/statm");
    double size = 0;
    double resident = 0;
    double shared = 0;
    file >> size >> resident >> shared;
    return (with_files ? resident : resident - shared) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Samples the memory every 50 microseconds during repeated runs.
double peak_memory(const Work& work, double seconds) {
    const auto own_memory = [&] { return resident_memory(work.memory == Memory::all); };
    const double before = work.memory == Memory::all ? 0 : own_memory();
    const auto run = work.make();
    for (int i = 0; i < 5; ++i) run();
    std::atomic<bool> done = false;
    std::atomic<double> peak = own_memory();
    std::jthread watch([&] {
        while (!done) {
            peak = std::max(peak.load(), own_memory());
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) run();
    done = true;
    watch.join();
    return peak - before;
}

// One prepared work. Each run is timed separately, so that the median is not affected by runs that
// another process disturbed.
class Measurement {
public:
    Measurement(const Work& work, double block)
        : name_(work.name), calls_(work.calls), seconds_of_block_(block), run_(work.make()) {}
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;

    const std::string& name() const { return name_; }
    Block measure() {
        benchmark::ClearRegisteredBenchmarks();
        auto* registered = benchmark::RegisterBenchmark(
            "block", [this](benchmark::State& state) { run_block(state); });
        registered->UseManualTime();
        if (runs_ > 0) registered->Iterations(runs_);
        else registered->MinTime(seconds_of_block_);
        Silent reporter;
        benchmark::RunSpecifiedBenchmarks(&reporter, std::string("."));
        const double seconds = median(seconds_);
        runs_ = std::max<benchmark::IterationCount>(
            static_cast<benchmark::IterationCount>(seconds_of_block_ / seconds), 3);
        return {seconds / calls_, waiting_, {}};
    }

private:
    void run_block(benchmark::State& state) {
        seconds_.clear();
        const double waited = waited_seconds();
        double whole = 0;
        for (auto _ : state) {
            const auto start = std::chrono::steady_clock::now();
            run_();
            const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
            state.SetIterationTime(time.count());
            seconds_.push_back(time.count());
            whole += time.count();
        }
        waiting_ = (waited_seconds() - waited) / whole;
    }

    std::string name_;
    double calls_;
    double seconds_of_block_;
    std::function<void()> run_;
    std::vector<double> seconds_;
    double waiting_ = 0;
    benchmark::IterationCount runs_ = 0;  // per block; 0: not known yet
};

void answer_all(std::FILE* questions, std::FILE* answers, MakeWorks make, int threads,
                double block) {
    std::vector<Work> works;
    std::unique_ptr<Measurement> current;
    char name[256];
    while (std::fgets(name, sizeof name, questions)) {
        name[std::strcspn(name, "\n")] = '\0';
        try {
            if (works.empty()) works = make(threads);
            const auto work = std::find_if(works.begin(), works.end(),
                                           [&](const Work& w) { return w.name == name; });
            if (work == works.end()) throw std::runtime_error("no such work");
            if (work->memory != Memory::no) {
                std::fprintf(answers, "%.9g 0\n", peak_memory(*work, std::max(block, 1.0)));
                std::fflush(answers);
                continue;
            }
            if (!current || current->name() != name) {
                current.reset();
                current = std::make_unique<Measurement>(*work, block);
            }
            const Block measured = current->measure();
            std::fprintf(answers, "%.9g %.9g\n", measured.seconds, measured.waiting);
        } catch (const std::exception& error) {
            std::string text = error.what();
            std::replace(text.begin(), text.end(), '\n', ' ');
            std::fprintf(answers, "? %s\n", text.c_str());
        }
        std::fflush(answers);
    }
}

}  // namespace

Serve serve(std::function<void()> prepare, MakeWorks make, int threads, double block) {
    return [=](std::FILE* questions, std::FILE* answers) {
        prepare();
        answer_all(questions, answers, make, threads, block);
    };
}

Serve serve_by_program(std::function<void()> prepare, std::vector<std::string> command, int threads,
                       double block) {
    return [=](std::FILE* questions, std::FILE* answers) mutable {
        prepare();
        for (std::FILE* const pipe : {questions, answers})
            command.push_back(std::to_string(fileno(pipe)));
        command.push_back(std::to_string(threads));
        command.push_back(std::to_string(block));
        std::vector<char*> arguments;
        for (std::string& argument : command) arguments.push_back(argument.data());
        arguments.push_back(nullptr);
        execv(arguments[0], arguments.data());
        std::fprintf(answers, "? cannot run %s\n", arguments[0]);
        std::fflush(answers);
    };
}

Worker::Worker(const Serve& serve) {
    int question[2];
    int answer[2];
    if (pipe(question) != 0 || pipe(answer) != 0) throw std::runtime_error("[bench] pipe failed");
    pid_ = fork();
    signal(SIGPIPE, SIG_IGN);  // measure() reports a process that died
    if (pid_ < 0) throw std::runtime_error("[bench] fork failed");
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        close(question[1]);
        close(answer[0]);
        serve(fdopen(question[0], "r"), fdopen(answer[1], "w"));
        _exit(0);
    }
    close(question[0]);
    close(answer[1]);
    ask_ = fdopen(question[1], "w");
    answer_ = fdopen(answer[0], "r");
}

Worker::~Worker() {
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    std::fclose(ask_);
    std::fclose(answer_);
    waitpid(pid_, nullptr, 0);
}

Block Worker::measure(const std::string& name) {
    char text[4096];
    std::fprintf(ask_, "%s\n", name.c_str());
    std::fflush(ask_);
    if (!std::fgets(text, sizeof text, answer_)) {
        throw std::runtime_error("[bench] " + name + ": the side's process died");
    }
    text[std::strcspn(text, "\n")] = '\0';
    if (text[0] == '?') throw std::runtime_error(text + 2);
    Block block;
    char* rest = nullptr;
    block.seconds = std::strtod(text, &rest);
    block.waiting = std::strtod(rest, &rest);
    block.way = rest + std::strspn(rest, " ");
    return block;
}

}  // namespace catena_bench
