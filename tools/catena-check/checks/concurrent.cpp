// Checks calls of one kernel from several threads at once, as hosts make them.
#include "rig.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>

namespace catena::check::concurrent {
namespace {

using testing::Example;
using testing::Failure;
using testing::Options;
using testing::Report;
using testing::Settings;
using testing::World;
using testing::detail::Exam;
using testing::detail::Use;

constexpr unsigned n_threads = 3;
constexpr int most_calls = 25;        // per thread
constexpr double most_seconds = 0.5;  // for the calls of one kernel

// The caller of one thread, with its own host and its own input values.
struct Caller {
    Caller(const Subject& subject, unsigned number)
        : world(make_world(subject)), seed(subject.seed32() + 7 * number) {}
    void take(const catena_function& f, const Example& example) {
        settings.seed = seed;
        exam.emplace(*world, f, make_sample(*world, f, example, seed), report, settings);
    }
    std::vector<Use> uses(int phase) {
        if (phase == CATENA_PHASE_BACKWARD && !exam->differentiable()) return {};
        return exam->uses(phase);
    }
    // Repeats a call; returns how the result differs from that of a single call.
    std::string again(const Use& use) {
        return exam->alike(use, exam->run(use, use.given, Options()));
    }

    std::unique_ptr<World> world;
    unsigned seed;
    Settings settings;
    Report report;
    std::optional<Exam> exam;
};

// Makes calls in all threads at once; returns the first problem, or an empty text.
std::string together(std::vector<Caller>& callers, const std::vector<const Use*>& uses,
                     int n_calls) {
    std::vector<std::string> problems(callers.size());
    std::barrier start(static_cast<std::ptrdiff_t>(callers.size()));
    {
        std::vector<std::jthread> team;
        for (std::size_t t = 0; t < callers.size(); ++t)
            team.emplace_back([&, t] {
                start.arrive_and_wait();
                for (int i = 0; i < n_calls && problems[t].empty(); ++i) try {
                        problems[t] = callers[t].again(*uses[t]);
                    } catch (const std::exception& e) {
                        problems[t] = e.what();
                    }
            });
    }
    for (const std::string& problem : problems)
        if (!problem.empty()) return problem;
    return {};
}

class Concurrent {
public:
    Concurrent(const Subject& subject, Findings& findings)
        : subject_(subject), findings_(findings) {
        for (unsigned t = 0; t < n_threads; ++t) callers_.emplace_back(subject, t);
    }
    void run() {
        World& world = *callers_[0].world;
        const catena_function& f = world.function(subject_.function);
        const bool composed = testing::detail::has_parts_alone(world, f);
        for (const Example& example : examples_of(world, f, example_seed).calls) {
            // Tries a longer call, which takes a while, then the example. Compositions are long enough.
            const auto sample = composed
                                    ? std::nullopt
                                    : longer(world, f, example, 1'000'000, 1001, subject_.seed32());
            for (const Example& call : {sample ? sample->example : example, example}) try {
                    for (Caller& c : callers_) c.take(c.world->function(f.name), call);
                    kernels(f, call);
                    break;
                } catch (const Failure&) {
                    // The function refuses the call with another thread's input values.
                }
        }
        if (!ran_ && why_.empty()) why_ = "no kernel that runs on host memory here";
        if (!ran_) findings_.skip("{}", why_);
    }

private:
    void kernels(const catena_function& f, const Example& call) {
        for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
            std::vector<std::vector<Use>> all;
            for (Caller& c : callers_) all.push_back(c.uses(phase));
            for (const Use& use : all[0]) {
                const World& world = *callers_[0].world;
                const catena_kernel* const k = use.kernel;
                if (k != nullptr && !testing::detail::on_cpu(*k)) continue;
                if ((k != nullptr ? world.origin(*k) : world.origin(f)) != subject_.id) continue;
                std::vector<const Use*> same;
                for (const auto& uses : all)
                    for (const Use& other : uses)
                        if (other.kernel == use.kernel && other.row == use.row) {
                            same.push_back(&other);
                            break;
                        }
                if (same.size() == callers_.size()) kernel(f, call, same);
            }
        }
    }
    void kernel(const catena_function& f, const Example& call,
                const std::vector<const Use*>& uses) {
        const std::string what = fmt::format("{} of \"{}\"", uses[0]->label, text_of(f, call));
        doing("{} in {} threads", what, n_threads);
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t t = 0; t < uses.size(); ++t) {
            if (callers_[t].again(*uses[t]).empty()) continue;
            why_ = "the same call differs alone: see determinism/repeated";
            return;
        }
        ran_ = true;
        const std::chrono::duration<double> once = std::chrono::steady_clock::now() - start;
        const int n_calls = static_cast<int>(
            std::clamp(most_seconds / std::max(once.count(), 1e-9), 2.0, 1.0 * most_calls));
        const std::string problem = together(callers_, uses, n_calls);
        if (!problem.empty())
            findings_.fail("{} in {} threads at once, each with numbers of its own: {}", what,
                           n_threads, problem);
    }

    const Subject& subject_;
    Findings& findings_;
    std::vector<Caller> callers_;
    bool ran_ = false;
    std::string why_;
};

void concurrent(const Subject& subject, Findings& findings) { Concurrent(subject, findings).run(); }
const Registered r1{{"determinism", "concurrent",
                     "concurrent calls from three threads give the same results as single calls",
                     concurrent, Each::function}};

}  // namespace
}  // namespace catena::check::concurrent
