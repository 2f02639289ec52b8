// One call of a function under test, and its results in every dtype from every kernel.
#pragma once

#include <functional>
#include <map>

#include "catena/testing/conform.hpp"
#include "testing/engine.hpp"

namespace catena::testing::detail {

// A kernel or the composition, a row of dtypes, and the results for the sample.
struct Use {
    bool flag(std::uint32_t of_kernel) const {
        return kernel != nullptr && (kernel->flags & of_kernel) != 0;
    }
    bool forward() const { return phase == CATENA_PHASE_FORWARD; }

    const catena_kernel* kernel = nullptr;  // null: the composition
    int phase = CATENA_PHASE_FORWARD;
    std::string label;
    std::string row;
    Tolerance tolerance;
    Given given;
    Arrays result;
};

class Exam {
public:
    Exam(World& w, const catena_function& function, Sample s, Report& r, const Settings& how)
        : world(w), f(function), sample(std::move(s)), report(r), settings(how), vars(f) {}

    // Runs a step of a check; body returns a message, or an empty text. The check passes by this
    // step only if `decides`, and fails if any step fails.
    void step(Check check, const std::string& what, const std::function<std::string()>& body,
              bool decides = true);

    Arrays forward(const Arrays& x, Options options = {});
    Arrays gradient(const Given& g, Options options = {});
    Arrays run(const Use& use, const Given& g, Options options);

    // Whether gradients are made of calls: of gradient(), or of the parts of compose().
    bool composed() const {
        return f.gradient != nullptr || f.grad_function != nullptr || f.compose != nullptr;
    }
    bool gradient_of_parts() const {
        return f.gradient == nullptr && f.grad_function == nullptr && f.compose != nullptr;
    }
    bool differentiable() const;
    // Returns the arguments in the sample's dtypes, with a gradient for each output that has one.
    Given base() const { return {sample.x, sample.y, draw_gy(sample.y)}; }
    // Returns the reference for backward kernels: the composed gradient, which has checks of its
    // own, or, without a composition, the gradient of the kernel that World selects.
    Arrays exact_gradient(const Given& g, Options options = {});

    // compare() and same_bits() with the names of a phase's results.
    std::string compare(const Arrays& got, const Arrays& expected, Tolerance tolerance,
                        int phase) const;
    std::string same_bits(const Arrays& got, const Arrays& expected, int phase) const;
    // Compares a result with the use's own: bit for bit if the kernel is DETERMINISTIC.
    std::string alike(const Use& u, const Arrays& got) const;
    // Checks that another run gives the same result.
    bool repeats(const Use& u);

    // Returns the names of inputs and outputs that a backward pass reads although they are not
    // retained, so that a host passes NULL for them; empty if there are none. Call it before calls
    // with NULL, because those would crash.
    std::string reads_unretained(std::uint64_t kept_x, std::uint64_t kept_y, const Given& g,
                                 Tolerance tolerance,
                                 const std::function<Arrays(const Options&)>& run);
    // Returns every kernel of a phase and the composition, once for each row of dtypes in which it
    // serves this call.
    std::vector<Use> uses(int phase);
    // Returns the results for the same numbers in the sample's dtypes, computed once for each row:
    // those of the composition, if there is one.
    const Arrays& expected(const Use& u);

    World& world;
    const catena_function& f;
    const Sample sample;
    Report& report;
    const Settings& settings;
    const TypeVars vars;

private:
    Arrays backward(const Given& g, Options options);
    Arrays draw_gy(const Arrays& y) const;
    void use(const catena_kernel* k, int phase, Row row, std::vector<Use>& result);
    // Reports an exception of a step.
    void caught(const std::exception& e, Check check, const std::string& what);
    bool fits(const Use& u, Row& row);
    bool prepare_backward(Use& u);
    Tolerance tolerance(const Row& row) const;

    std::string unfit_;  // why fits() returned false
    // By row: outputs and their gradients; expected outputs and expected gradients of inputs.
    using Both = std::pair<Arrays, Arrays>;
    std::map<std::string, Both> outputs_, expected_;
};

// Returns the check that a violation counts for, or none if the exception is another error.
std::optional<Check> watcher_of(const std::exception& e);
// Whether a text begins with "[catena.relu] ", the function's name, and has a message after it.
bool explains(const catena_function& f, const std::string& text);
Arrays plus_one(Arrays arrays, std::size_t n);
// Returns the message for a wrong result of a kernel that was asked to add.
std::string asked_to_add(const std::string& text);

// Compares every kernel with float64, and with the first kernel of its row. Returns false if a
// kernel does not repeat its results, so that other checks are meaningless.
bool check_values(Exam& exam, const std::vector<Use>& uses, Check check);
// Checks guards, uninitialized memory, alignment, REQ_ADD, NaN and threads for one kernel.
void check_behaviour(Exam& exam, const Use& u);
// Checks that 2 and 3 threads give the same. Small calls run on one thread, so they do not decide.
void check_threads(Exam& exam, const Use& u, bool large);

// Checks calls derived from an example: empty, size 1, no axes, large, and calls to be refused.
void check_shapes(World& world, const catena_function& f, const Example& example, Report& report,
                  const Settings& settings);
// Runs the checks on one sample, with its numbers as they are. Unless `thorough`, checks
// first-order gradients only, and no subsets of them.
void check_sample(World& world, const catena_function& f, const Sample& sample, Report& report,
                  const Settings& settings, bool thorough = true);

}  // namespace catena::testing::detail
