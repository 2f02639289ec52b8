// One call of a function under test: what it gives in every dtype, from every kernel.
#pragma once

#include <functional>
#include <map>

#include "catena/testing/conform.hpp"
#include "testing/engine.hpp"

namespace catena::testing::detail {

// A kernel, one of its rows of dtypes, and what it gives for the sample.
struct Use {
    const catena_kernel* kernel = nullptr;
    std::string label;
    std::string row;
    Tolerance tolerance;
    Given given;
    std::vector<Array> result;
    std::vector<Array> expected;
};

class Exam {
public:
    Exam(World& w, const catena_function& function, Sample s, Report& r, const Settings& how)
        : world(w), f(function), sample(std::move(s)), report(r), settings(how), vars(f) {}

    // Runs a check; body returns what is wrong, or an empty text. The check passes by this step only if
    // `decides`; it fails by any step.
    void step(Check check, const std::string& what, const std::function<std::string()>& body,
              bool decides = true);

    std::vector<Array> forward(const std::vector<Array>& x, Options options = {});
    std::vector<Array> gradient(const Given& g, Options options = {});
    std::vector<Array> run(const Use& use, const Given& g, Options options);

    bool composed() const { return f.gradient != nullptr || f.grad_function != nullptr; }
    bool differentiable() const;
    // In the sample's dtypes, with a gradient for each output that has one.
    Given base() const { return {sample.x, sample.y, draw_gy(sample.y)}; }
    // What backward kernels are compared with: the composed gradient, which has checks of its own, or,
    // where there is none, that of the host's choice of kernel.
    std::vector<Array> exact_gradient(const Given& g, Options options = {});

    // compare() and same_bits() with the names of a phase's results.
    std::string compare(const std::vector<Array>& got, const std::vector<Array>& expected,
                        Tolerance tolerance, int phase) const;
    std::string same_bits(const std::vector<Array>& got, const std::vector<Array>& expected,
                          int phase) const;
    // Whether a result is the use's own: bit for bit where its kernel says so.
    std::string alike(const Use& u, const std::vector<Array>& got) const;
    // The same bits again.
    bool repeats(const Use& u);

    // The inputs and outputs that a backward pass reads though they are not retained; a host gives NULL
    // for them. Empty if its result depends on none. To be called before calls with NULL, because those
    // would crash.
    std::string reads_unretained(std::uint64_t kept_x, std::uint64_t kept_y, const Given& g,
                                 Tolerance tolerance,
                                 const std::function<std::vector<Array>(const Options&)>& run);
    // Every kernel of a phase, once for each of its rows of dtypes in which it takes this call.
    std::vector<Use> uses(int phase);

    World& world;
    const catena_function& f;
    const Sample sample;
    Report& report;
    const Settings& settings;
    const TypeVars vars;

private:
    std::vector<Array> backward(const Given& g, Options options);
    std::vector<Array> draw_gy(const std::vector<Array>& y) const;
    void use(const catena_kernel& k, const Row& row, std::vector<Use>& result);
    // Reports an exception of a step.
    void caught(const std::exception& e, Check check, const std::string& what);
    bool fits(const std::vector<Array>& x, const Row& row);
    bool prepare_backward(Use& u);
    void expect(Use& u);
    Tolerance tolerance(const Row& row) const;

    std::string unfit_;  // why fits() says no
    std::map<std::string, std::pair<std::vector<Array>, std::vector<Array>>> expected_;
};

// The check that watches for the violation that an exception is; none: it is another error.
std::optional<Check> watcher_of(const std::exception& e);
// "[catena.relu] ...", with words behind it.
bool explains(const catena_function& f, const std::string& text);
std::vector<Array> plus_one(std::vector<Array> arrays, std::size_t n);
// What is wrong with a result that the kernel was asked to add.
std::string asked_to_add(const std::string& text);

// Every kernel against float64, and against the first of its row. False: one does not even give the
// same again, so that nothing else can be said of it.
bool check_values(Exam& exam, const std::vector<Use>& uses, Check check);
// How one kernel behaves.
void check_behaviour(Exam& exam, const Use& u);
// The same from any number of threads. Small calls run on one thread, so they decide nothing.
void check_threads(Exam& exam, const Use& u, bool large);

// Checks of other calls derived from an example: empty, of size 1, without axes, large; and those that
// a function has to refuse.
void check_shapes(World& world, const catena_function& f, const Example& example, Report& report,
                  const Settings& settings);
// What one sample says, with its numbers as they are. Unless `thorough`, gradients are measured, but
// not those of gradients, nor sets of them.
void check_sample(World& world, const catena_function& f, const Sample& sample, Report& report,
                  const Settings& settings, bool thorough = true);

}  // namespace catena::testing::detail
