// The subject twice in one process: in a testing::World, which gives the expected results, and in a
// second copy with a controlled host, whose caches are cold.
#pragma once

#include <catena/testing/sample.hpp>
#include <testing/exam.hpp>
#include <testing/library.hpp>

#include "check.hpp"
#include "control.hpp"

namespace catena::check {

// Why the table cannot be read; empty if it can.
std::string damage(const catena_manifest& manifest, const catena_plugin& table);

// The plugin, then those that it is tested with.
std::unique_ptr<testing::World> make_world(const Subject& subject);
// Why nothing of the subject has a part in calls of the subject's function; empty if something has.
std::string absent_in(testing::World& world, const Subject& subject);
// A call of the example's kind with longer first extents, up to `most` and to inputs of `total`
// elements, if the function accepts one.
std::optional<testing::Sample> longer(testing::World& world, const catena_function& f,
                                      const testing::Example& example, std::int64_t total,
                                      std::int64_t most, unsigned seed);
// Sets an element to the nearest number that its dtype has; integers have no NaN.
void set_clamped(testing::Array& a, std::int64_t i, double value);
// A value for each attribute: the given one or its default. Its range is not checked.
std::vector<catena_value> values_of(const catena_function& f, const testing::OwnedAttrs& attrs);

using testing::Array;
using testing::detail::Engine;
using testing::detail::Placement;
using testing::detail::Reply;
using testing::detail::Step;

// A second instance of a library, with its own data: mapped from a copy of the file.
testing::detail::Module second_copy(const std::filesystem::path& file);

// A kernel of the subject for a call that it serves, with what it gives.
struct Use {
    const catena_kernel* kernel;               // of the second copy
    std::vector<const catena_kernel*> before;  // the forward kernels of a backward kernel's variant
    testing::detail::Use of;                   // as the world has it
    bool repeats = true;  // the same call gives the same: results can be compared
};

// A call that the function accepts, with numbers.
struct Play {
    testing::Sample sample;
    testing::detail::Given base;  // in the sample's dtypes
    std::vector<Use> uses;
    bool composed = false;  // gradient() is the subject's, and serves
    std::vector<Array> gx;  // by gradient()
};

struct Circumstances {
    std::function<void()> arm = {};  // before the callback itself
    Placement placement = {};
};

// A callback of a function for one call, ready to be called again under other circumstances.
struct Callback {
    std::string label;  // with the call, in words
    const catena_function* function;
    std::function<Reply(const Circumstances&)> call;
    std::vector<Array> expected;  // empty where the callback gives no arrays
    testing::Tolerance tolerance;
    int phase = CATENA_PHASE_FORWARD;  // of what it gives

    // What is wrong with a reply: what crossed the border, and the numbers if it succeeded.
    std::string judge(const Reply& reply) const;
    std::string judge_success(const Reply& reply) const;
    // Calls it, and fails the check if the reply is wrong. `words`: the circumstances.
    void check(Findings& findings, const std::string& words, const Circumstances& now,
               bool has_to_succeed = true) const;
    // The label without the call's text: the same for every example.
    std::string kind() const { return label.substr(0, label.find(" of \"")); }
};

// The subject's plugin, and its function if one is named.
class Rig {
public:
    // The entry has been called, init() as well; `host` is the table that it got.
    explicit Rig(const Subject& subject, const catena_host& host = controlled_host());

    testing::World& world() { return *world_; }
    std::size_t n_functions() const;
    // The second copy's where the subject brings it, else the world's.
    const catena_function& function();
    const catena_function& known() { return world_->function(subject_.function); }
    bool brings() const;
    std::vector<testing::Example> examples();
    // For the function's examples, in training and without. Skips the check if there is none.
    std::vector<Play> plays(Findings& findings);
    Play play(testing::Sample sample);
    // One that calls the second copy.
    Engine caller(const testing::OwnedAttrs& attrs, bool train, const Circumstances& now);
    Reply run(const Use& use, const testing::detail::Given& given, const Play& play,
              const Circumstances& now, Step last = Step::run);
    std::vector<Callback> callbacks(const Play& play);
    // Those of all plays. Skips the check if there is nothing to call.
    void each_callback(Findings& findings, const std::function<void(const Callback&)>& body);
    // Kernels of the second copy that this machine can run, in memory of the host or of a device
    // that the plugin brings itself.
    std::vector<const catena_kernel*> kernels(int phase);

private:
    std::vector<const catena_kernel*> mine(const std::vector<const catena_kernel*>& known) const;

    const Subject& subject_;
    std::unique_ptr<testing::World> world_;
    testing::World fresh_{std::vector<std::string>()};
    std::map<const catena_kernel*, const catena_kernel*> kernels_;  // by the world's
};

// Skips the check if no callback of the plugin was called.
void skip_if_idle(Findings& findings);

}  // namespace catena::check
