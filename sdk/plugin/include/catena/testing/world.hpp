// A small host for tests of plugins: loads them, runs any of their kernels on host arrays, and calls
// functions on variables. No link to the core.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "catena/plugin/philox.hpp"
#include "catena/testing/array.hpp"
#include "catena/testing/attributes.hpp"
#include "catena/testing/failure.hpp"
#include "catena/testing/inline.hpp"
#include "catena/testing/library.hpp"

namespace catena::testing {
class World;
namespace detail {
class Device;
}

// A call of a function on variables that was recorded.
struct Step {
    const catena_function* function;
    OwnedAttrs attrs;
    std::vector<catena_var*> x;
    std::vector<catena_var*> y;
};
}  // namespace catena::testing

// One call in flight: what a kernel sees as its context.
struct catena_ctx {
    catena::testing::World* world;
    std::string error;
    std::deque<std::unique_ptr<catena_var>> vars;
    bool train = true;
    std::vector<catena::testing::Step>* tape = nullptr;  // where calls are recorded
    const char* device = "";                             // that the call runs on
    std::string thrown = {};                             // by a piece of parallel_for()
};
struct catena_var {
    catena::testing::Array array;
};
struct catena_callable {
    const catena_function* function;
};

namespace catena::testing {

using plugin::set;
using plugin::value_of;

// What backward gets for an input or output that is not retained.
enum class Unretained {
    missing,  // NULL, as from a host
    given,    // the array itself
    garbage,  // NaN everywhere, 0 for integers; as a tensor of extents 1
};

struct Options {
    const char* isa = nullptr;     // nullptr: the best that this machine has
    const char* plugin = nullptr;  // the id of the one whose kernel is to run; nullptr: any
    const char* device = nullptr;  // nullptr: host memory where there is a kernel for it
    bool add = false;              // to outputs that hold 1 everywhere; integers are written
    bool train = true;
    int threads = 1;
    std::uint64_t targets = ~std::uint64_t{0};  // of the first 64 inputs; of more, all are
    const catena_kernel* kernel = nullptr;      // just this one
    std::uint8_t fill = 0xff;  // the bytes of uninitialised memory: outputs, saved, scratch
    Unretained unretained = Unretained::missing;
    int spoilt = -1;  // of inputs, then outputs, the one that is not just given; -1: all
};

class World {
public:
    // The plugins to test. catena's own are loaded where a function of theirs is asked for.
    explicit World(const std::string& path) { load(path, true); }
    explicit World(std::initializer_list<const char*> paths)
        : World(std::vector<std::string>(paths.begin(), paths.end())) {}
    explicit World(const std::vector<std::string>& paths) {
        for (const std::string& path : paths) load(path, true);
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    const catena_function& function(const std::string& name);
    // Functions that the plugins to test describe, or have kernels for.
    std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }
    const std::vector<const catena_kernel*>& kernels() const { return kernels_; }
    // Those of a function's phase that this machine and the plugins' devices can run.
    std::vector<const catena_kernel*> kernels(const std::string& name, int phase) const;
    // Devices for which a function has kernels, but that are not there: why, a line each.
    std::set<std::string> skipped(const std::string& name) const;
    // The id of the plugin that brought a kernel, or a function.
    const std::string& origin(const catena_kernel& kernel) const { return origins_.at(&kernel); }
    const std::string& origin(const catena_function& f) const { return origins_.at(&f); }
    // Whether it is of one of the plugins to test.
    template <class Part>
    bool under_test(const Part& part) const {
        return given_.contains(origin(part));
    }
    // The plugin whose kernel ran last, and how many ran.
    const std::string& ran() const { return ran_; }
    std::size_t runs() const { return runs_; }
    // The kernels that ran since the last forget_runs().
    const std::set<const catena_kernel*>& kernels_run() const { return kernels_run_; }
    void forget_runs() { kernels_run_.clear(); }

    // Instruction sets of this machine for which a function has a forward kernel; those that serve
    // halves on copies do not count.
    std::vector<const char*> isas(const std::string& name);

    // Shapes and dtypes of the outputs, as the function infers them.
    std::vector<catena_meta> infer(const std::string& name,
                                   const std::vector<std::optional<catena_meta>>& inputs,
                                   const Attrs& attrs = {});
    // Outputs of a call, then the inputs that the function updates; inputs without a value are
    // missing ones. VIEW functions copy.
    std::vector<Array> forward(const std::string& name, const std::vector<Array>& inputs,
                               const Attrs& attrs = {}, const Options& options = {});
    // Gradients of the inputs in options.targets that are differentiable; the others are empty. A
    // kernel with saved state runs its forward kernel first, with the numbers of the last forward().
    std::vector<Array> backward(const std::string& name, const std::vector<Array>& inputs,
                                const std::vector<Array>& outputs, const std::vector<Array>& gy,
                                const Attrs& attrs = {}, const Options& options = {});
    // The same through the function's composition of host functions.
    std::vector<Array> gradient(const std::string& name, const std::vector<Array>& inputs,
                                const std::vector<Array>& outputs, const std::vector<Array>& gy,
                                const Attrs& attrs = {}, const Options& options = {});
    // Gradients of sum(ggx * gradient(...)) with respect to the inputs, then to gy.
    std::vector<Array> second(const std::string& name, const std::vector<Array>& inputs,
                              const std::vector<Array>& outputs, const std::vector<Array>& gy,
                              const std::vector<Array>& ggx, const Attrs& attrs = {},
                              const Options& options = {});

    static const catena_host& host();
    int threads = 1;
    std::uint64_t seed = 0;
    std::uint64_t drawn = 0;

private:
    bool runs(const catena_kernel& k) const;
    // Null: host memory.
    const detail::Device* device_of(const catena_kernel& k) const {
        const auto found = devices_.find(k.device);
        return found == devices_.end() ? nullptr : found->second;
    }
    static bool has(const std::string& isa) {
#if defined(__x86_64__)
        if (isa == "x86-64-v3")
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        if (isa == "x86-64-v4")
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
        return isa.empty();
    }
    void load(const std::string& path, bool given);
    void add(const detail::Library& library, bool given);
    std::vector<catena_value> bind(const catena_function& f, const Attrs& attrs) const;
    static std::vector<catena_meta> infer(const catena_function& f, catena_ctx& ctx,
                                          const std::vector<catena_value>& attrs,
                                          const std::vector<std::optional<catena_meta>>& x);
    // Kernels for these dtypes, best first.
    std::vector<const catena_kernel*> candidates(const catena_function& f, int phase,
                                                 const std::vector<Array>& x,
                                                 const std::vector<Array>& y,
                                                 const Options& options) const;
    std::vector<Array> forward(const std::string& name, const std::vector<Array>& inputs,
                               const Attrs& attrs, const Options& options,
                               std::vector<Array>& saved);
    bool forward_of(const catena_kernel& backward, const std::vector<Array>& inputs,
                    const Attrs& attrs, const Options& options, std::vector<Array>& y,
                    std::vector<Array>& saved);
    struct Invocation;
    struct Composition;
    void compose(Composition& c, const std::vector<catena_value>& values,
                 const std::vector<Array>& gy, const Attrs& attrs, const Options& options);

    static World& of(catena_ctx* ctx) { return *ctx->world; }
    const void* const* extensions(const std::string& device, const std::string& id) const;
    static catena_host make_host();
    // For ever, for plugins keep what they find.
    static const catena_callable* callable(const catena_function& f) {
        static std::map<const catena_function*, catena_callable> all;
        static std::mutex mutex;  // worlds may be in different threads
        const std::lock_guard lock(mutex);
        return &all.try_emplace(&f, catena_callable{&f}).first->second;
    }

    std::map<std::string, const catena_function&> functions_;
    std::set<std::string> names_;
    std::map<std::string, std::string> paths_;  // by id
    // By name; null where the backend has no device.
    std::map<std::string, const detail::Device*> devices_;
    std::vector<const catena_extension*> extensions_;
    std::vector<const catena_kernel*> kernels_;
    std::map<std::pair<std::string, int>, std::vector<const catena_kernel*>> by_phase_;
    std::map<const void*, std::string> origins_;
    std::set<std::string> given_;  // the plugins to test, by id
    std::string ran_;
    std::size_t runs_ = 0;
    std::set<const catena_kernel*> kernels_run_;
    std::uint64_t began_ = 0;  // `drawn` when the last forward() began
};

// The type variables of a function in order of first use over inputs, then outputs: the columns of
// the rows of dtypes that kernels have.
class TypeVars {
public:
    explicit TypeVars(const catena_function& f) : f_(f) {
        for (std::uint32_t i = 0; i < f.n_inputs; ++i) in_.push_back(add(f.inputs[i]->type_var));
        for (std::uint32_t i = 0; i < f.n_outputs; ++i) out_.push_back(add(f.outputs[i]->type_var));
    }
    std::size_t size() const { return names_.size(); }
    std::size_t input(std::size_t i) const {
        return in_[std::min<std::size_t>(i, f_.n_inputs - 1)];
    }
    std::size_t output(std::size_t i) const { return out_[i]; }

private:
    std::size_t add(const std::string& name) {
        const auto i = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) -
                                                names_.begin());
        if (i == names_.size()) names_.push_back(name);
        return i;
    }

    const catena_function& f_;
    std::vector<std::string> names_;
    std::vector<std::size_t> in_;
    std::vector<std::size_t> out_;
};

// "forward float32 'x86-64-v3' of org.example.thing".
inline std::string label_of(const World& world, const catena_kernel& k, const std::string& row) {
    return std::string(k.phase == CATENA_PHASE_FORWARD ? "forward" : "backward") + " " + row +
           " '" + k.isa + "' of " + world.origin(k) +
           (std::strcmp(k.device, "cpu") == 0 ? "" : std::string(" on ") + k.device);
}
inline std::uint32_t input_flags(const catena_function& f, std::size_t i) {
    return f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->flags;
}
inline std::string input_name(const catena_function& f, std::size_t i) {
    const std::string name = f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->name;
    return i < f.n_inputs ? name : name + "[" + std::to_string(i - f.n_inputs + 1) + "]";
}
// A result of a call: outputs, then inputs that are updated; of backward, gradients of the inputs.
inline std::string result_name(const catena_function& f, int phase, std::size_t i) {
    if (phase == CATENA_PHASE_BACKWARD) return "gradient of " + input_name(f, i);
    if (i < f.n_outputs) return f.outputs[i]->name;
    std::size_t updated = i - f.n_outputs;
    for (std::size_t k = 0; k < f.n_inputs; ++k)
        if ((f.inputs[k]->flags & CATENA_PORT_MUTATED) != 0 && updated-- == 0)
            return std::string(f.inputs[k]->name) + " as updated";
    return std::to_string(i);
}
// What a call is given, with what it leaves out. Refused is what a host refuses, in its words.
template <class Input>
std::vector<Input> complete(const catena_function& f, std::vector<Input> x) {
    const std::size_t n = f.n_inputs;
    const bool variadic = n > 0 && (f.inputs[n - 1]->flags & CATENA_PORT_VARIADIC) != 0;
    std::size_t least = n;
    while (least > 0 && (f.inputs[least - 1]->flags & CATENA_PORT_OPTIONAL) != 0) --least;
    if (x.size() < least || (x.size() > n && !variadic)) {
        std::string most = variadic ? " or more" : " to " + std::to_string(n);
        if (!variadic && least == n) most.clear();
        throw Failure(CATENA_E_INVALID, std::string("[") + f.name + "] inputs: expected " +
                                            std::to_string(least) + most + ", got " +
                                            std::to_string(x.size()));
    }
    x.resize(std::max(x.size(), n));
    for (std::size_t i = 0; i < x.size(); ++i)
        if (!x[i] && (input_flags(f, i) & CATENA_PORT_OPTIONAL) == 0)
            throw Failure(CATENA_E_INVALID, std::string("[") + f.name + "] " + input_name(f, i) +
                                                ": expected an array, got none");
    return x;
}
inline std::vector<std::optional<catena_meta>> metas_of(const std::vector<Array>& arrays) {
    std::vector<std::optional<catena_meta>> metas(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (arrays[i]) metas[i] = arrays[i].meta();
    return metas;
}
// Whether a gradient flows to an input or from an output.
inline bool takes_gradient(const catena_function& f, std::size_t i, const Array& x) {
    return x && x.floating() && (input_flags(f, i) & CATENA_PORT_NON_DIFFERENTIABLE) == 0;
}
inline bool gives_gradient(const catena_function& f, std::size_t i, const Array& y) {
    return y && y.floating() &&
           (f.outputs[i]->flags & (CATENA_PORT_HIDDEN | CATENA_PORT_NON_DIFFERENTIABLE)) == 0;
}
inline bool retains(std::uint64_t set, std::size_t i, std::size_t n_ports) {
    if (i + 1 >= n_ports && (set & CATENA_RETAIN_REST) != 0) return true;
    return i < 63 && (set >> i & 1) != 0;
}

// The inputs whose gradients are wanted, as a call says it: bit i % 64 of word i / 64.
class Targets {
public:
    Targets(const catena_function& f, const std::vector<Array>& x, const Options& options)
        : words_(x.size() / 64 + 1) {
        for (std::size_t i = 0; i < x.size(); ++i)
            if (takes_gradient(f, i, x[i]) && (i >= 64 || (options.targets >> i & 1) != 0))
                words_[i / 64] |= std::uint64_t{1} << i % 64;
    }
    bool operator[](std::size_t i) const { return (words_[i / 64] >> i % 64 & 1) != 0; }
    const std::uint64_t* data() const { return words_.data(); }

private:
    std::vector<std::uint64_t> words_;
};

}  // namespace catena::testing

#ifndef CATENA_TESTING_SEPARATE
#include "catena/testing/device.hpp"
#include "catena/testing/world_calls.hpp"
#include "catena/testing/world_gradient.hpp"
#include "catena/testing/world_host.hpp"
#include "catena/testing/world_plugins.hpp"
#endif
