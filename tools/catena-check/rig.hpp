// Loads the subject twice into one process: into a testing::World, which computes the expected
// results, and as a second copy, whose caches are empty at first, with the controlled host.
#pragma once

#include <catena/testing/sample.hpp>
#include <testing/exam.hpp>
#include <testing/library.hpp>

#include "check.hpp"
#include "control.hpp"

namespace catena::check {

// Returns why the table is invalid, or an empty text.
std::string damage(const catena_manifest& manifest, const catena_plugin& table);

// Returns a world with the plugin, then the plugins in subject.with.
std::unique_ptr<testing::World> make_world(const Subject& subject);
// Returns why calls of subject.function run no code of the subject, or an empty text if they do.
std::string absent_in(testing::World& world, const Subject& subject);
// Returns the example with longer first extents, up to `most` and to inputs of `total` elements, or
// nothing if the function accepts no such call.
std::optional<testing::Sample> longer(testing::World& world, const catena_function& f,
                                      const testing::Example& example, std::int64_t total,
                                      std::int64_t most, unsigned seed);
// Sets an element to the nearest value of its dtype; NaN becomes 0 in integer arrays.
void set_clamped(testing::Array& a, std::int64_t i, double value);
// Returns a value for each attribute: the given one or its default. Does not check ranges.
std::vector<catena_value> values_of(const catena_function& f, const testing::OwnedAttrs& attrs);

using testing::Array;
using testing::detail::Engine;
using testing::detail::Placement;
using testing::detail::Reply;
using testing::detail::Step;

// Loads a second instance of a library, with its own data, from a copy of the file in memory.
testing::detail::Module second_copy(const std::filesystem::path& file);

// A kernel of the subject, a call that it serves, and the results.
struct Use {
    const catena_kernel* kernel;               // of the second copy
    std::vector<const catena_kernel*> before;  // the forward kernels of a backward kernel's variant
    testing::detail::Use of;                   // the same kernel and call in the world
    bool repeats = true;  // the same call gives the same results, so they can be compared
};

// A call that the function accepts, with its arrays.
struct Play {
    testing::Sample sample;
    testing::detail::Given base;  // in the sample's dtypes
    std::vector<Use> uses;
    bool composed = false;  // the subject has a gradient() that succeeds
    std::vector<Array> gx;  // results of gradient()
    // The subject's composition of the call, if it has one; `repeats` as in Use.
    std::optional<testing::detail::Use> composition = {};
    bool repeats = true;
};

struct Circumstances {
    std::function<void()> arm = {};  // called before the callback
    Placement placement = {};
};

// A callback of a function and its arguments; it can be called under different circumstances.
struct Callback {
    std::string label;  // names the callback and the call
    const catena_function* function;
    std::function<Reply(const Circumstances&)> call;
    std::vector<Array> expected;  // empty: the results are not compared
    testing::Tolerance tolerance;
    int phase = CATENA_PHASE_FORWARD;  // of the results

    // Returns what is wrong with a reply and, if it succeeded, with its results; empty: nothing.
    std::string judge(const Reply& reply) const;
    std::string judge_success(const Reply& reply) const;  // a failure is wrong, too
    // Calls it and fails the check if the reply is wrong. `words` describes the circumstances.
    void check(Findings& findings, const std::string& words, const Circumstances& now,
               bool has_to_succeed = true) const;
    // Returns the label without the call. It is the same for every example.
    std::string kind() const { return label.substr(0, label.find(" of \"")); }
};

// Both instances of the plugin, and the calls of subject.function.
class Rig {
public:
    // Loads the plugin; the second copy gets `host` in its entry() and init().
    explicit Rig(const Subject& subject, const catena_host& host = controlled_host());

    testing::World& world() { return *world_; }
    std::size_t n_functions() const;
    // Returns the second copy's function if the subject has it, else the world's.
    const catena_function& function();
    const catena_function& known() { return world_->function(subject_.function); }
    bool brings() const;
    std::vector<testing::Example> examples();
    // Returns the function's examples, with and without training; skips the check if none works.
    std::vector<Play> plays(Findings& findings);
    Play play(testing::Sample sample);
    // Returns an engine that calls the second copy.
    Engine caller(const testing::OwnedAttrs& attrs, bool train, const Circumstances& now);
    Reply run(const Use& use, const testing::detail::Given& given, const Play& play,
              const Circumstances& now, Step last = Step::run);
    std::vector<Callback> callbacks(const Play& play);
    // Calls body for each callback of all plays. Skips the check if there is nothing to call.
    void each_callback(Findings& findings, const std::function<void(const Callback&)>& body);
    // Returns the second copy's kernels that run here, on the CPU or on a backend of the plugin.
    std::vector<const catena_kernel*> kernels(int phase);

private:
    std::vector<const catena_kernel*> mine(const std::vector<const catena_kernel*>& known) const;

    const Subject& subject_;
    std::unique_ptr<testing::World> world_;
    testing::World fresh_{std::vector<std::string>()};
    std::map<const catena_kernel*, const catena_kernel*> kernels_;  // by the world's kernels
};

// Skips the check if no callback of the plugin was called.
void skip_if_idle(Findings& findings);

}  // namespace catena::check
