// The subject twice in one process: once in a testing::World, which says what is right, and once more,
// fresh, with a host under control. What is cold there, caches and first calls, stays cold.
#pragma once

#include "caller.hpp"
#include "check.hpp"
#include "plugin.hpp"

namespace catena::check {

// A second instance of a library, with its own data: mapped from a copy of the file.
Module second_copy(const std::filesystem::path& file);

// A kernel of the subject for a call that it serves, with what it gives.
struct Use {
    const catena_kernel* kernel;  // of the second copy
    const catena_kernel* before;  // the forward kernel of a backward kernel's variant
    testing::detail::Use of;      // as the world has it
    bool repeats = true;          // the same call gives the same: results can be compared
};

// A call that the function accepts, with numbers.
struct Play {
    testing::Sample sample;
    testing::detail::Given base;  // in the sample's dtypes
    std::vector<Use> uses;
    bool composed = false;       // gradient() is the subject's, and serves
    std::vector<Array> gx;       // by gradient()
    std::vector<catena_meta> y;  // of the sample
    std::string text() const { return sample.text; }
};

class Rig {
public:
    // The entry has been called, init() as well; `host` is the table that it got.
    explicit Rig(const Subject& subject, const catena_host& host = controlled_host());

    testing::World& world() { return *world_; }
    const catena_plugin& table() const { return *table_; }
    // Of the second copy where the subject brings it.
    const catena_function& function(const std::string& name);
    bool brings(const std::string& name) const { return functions_.contains(name); }
    std::vector<testing::Example> examples(const std::string& name);
    // For the function's examples, in training and without.
    std::vector<Play> plays(const std::string& name);
    Play play(const catena_function& f, testing::Sample sample);
    Caller caller(const catena_function& f, const OwnedAttrs& attrs, bool train) {
        return {*world_, devices_, f, attrs, train};
    }
    // Kernels of the second copy that this machine can run, in memory of the host or of a device that
    // the plugin brings itself.
    std::vector<const catena_kernel*> kernels(const std::string& name, int phase);

private:
    const catena_kernel* forward_of(const Use& use, const catena_function& f) const;

    const Subject& subject_;
    std::unique_ptr<testing::World> world_;
    Devices devices_;
    const catena_plugin* table_ = nullptr;
    std::map<std::string, const catena_function*> functions_;
    std::map<const catena_kernel*, const catena_kernel*> kernels_;  // by the world's
};

// A check that came to no callback of the plugin has nothing to say.
void skip_if_idle(Findings& findings);

// Whether a row of the kernel's dtypes has those of the arrays.
bool fits(const catena_function& f, const catena_kernel& k, const std::vector<Array>& x,
          const std::vector<catena_meta>& y);
std::vector<catena_meta> metas_of(const std::vector<Array>& arrays, std::size_t n);

}  // namespace catena::check
