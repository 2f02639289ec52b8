// A small host for tests of plugins: loads them, runs any of their kernels on host arrays, and
// calls functions on variables. It is not linked with the core.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catena/plugin/error.hpp"
#include "catena/testing/example.hpp"

#if !defined(CATENA_TESTING_PLUGINS)  // the folder of catena's own plugins
#define CATENA_TESTING_PLUGINS ""
#endif

namespace catena::testing {
class World;
struct Options;

// A recorded call of a function on variables.
struct RecordedCall {
    const catena_function* function;
    OwnedAttrs attrs;
    std::vector<catena_var*> x;
    std::vector<catena_var*> y;
    std::uint64_t drawn = 0;  // random numbers drawn before it
};
}  // namespace catena::testing

struct catena_var {
    catena::testing::Array array;
};
// A call in progress, which is the context of its kernels.
struct catena_ctx {
    catena::testing::World* world;
    std::string error;
    std::vector<std::unique_ptr<catena_var>> vars;
    bool train = true;
    std::vector<catena::testing::RecordedCall>* tape = nullptr;  // where calls are recorded
    const char* device = "";                                     // the device that the call runs on
    std::string thrown = {};                                     // exception of parallel_for()
    // Of a compose() that runs:
    const catena_function* composes = nullptr;
    std::vector<catena_var*> x = {};                    // its inputs
    const catena::testing::Options* options = nullptr;  // of its calls
    bool shapes = false;                                // they compute shapes and dtypes alone
    const catena_ctx* outer = nullptr;                  // the composition that it is a part of
};

namespace catena::testing {

using plugin::set;
using plugin::value_of;

// The value that backward gets for an input or output that is not retained.
enum class Unretained {
    missing,  // NULL, as from a host
    given,    // the array itself
    garbage,  // NaN everywhere, 0 for integers; as a tensor of extents 1
};

struct Options {
    const char* isa = nullptr;     // nullptr: the best that this machine has
    const char* plugin = nullptr;  // id of the plugin whose kernel runs; nullptr: any
    const char* device = nullptr;  // nullptr: host memory if a kernel for it exists
    bool add = false;              // adds to outputs filled with 1; integers are overwritten
    bool train = true;
    std::uint32_t flags = 0;  // of the call, besides train: CATENA_CALL_BFLOAT16
    int threads = 1;
    std::uint64_t targets = ~std::uint64_t{0};  // bits of inputs; those from the 65th on are wanted
    const catena_kernel* kernel = nullptr;      // runs only this kernel
    bool composition = false;                   // runs compose() although there are kernels
    std::uint8_t fill = 0xff;  // the bytes of uninitialised memory: outputs, saved, scratch
    // Calls of a composition with larger results fail with CATENA_E_NOMEM. A kernel that needs more
    // for scratch and saved state does not serve the call.
    std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
    Unretained unretained = Unretained::missing;
    int spoilt = -1;      // the one input or output to which `unretained` applies; -1: all
    bool within = false;  // a plugin makes the call: the shapes of its own results were checked
};

class World {
public:
    // Loads the plugins to test. catena's own plugins are loaded when a function of them is needed.
    explicit World(const std::string& path) : World(std::vector<std::string>{path}) {}
    explicit World(std::initializer_list<const char*> paths)
        : World(std::vector<std::string>(paths.begin(), paths.end())) {}
    explicit World(const std::vector<std::string>& paths) : World(paths, CATENA_TESTING_PLUGINS) {}
    // The folder of catena's own plugins is the environment's CATENA_TESTING_PLUGINS, else `own`.
    World(const std::vector<std::string>& paths, const char* own);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    const catena_function& function(const std::string& name);
    // Functions that the plugins to test describe, or have kernels for.
    std::vector<std::string> names() const;
    const std::vector<const catena_kernel*>& kernels() const;
    // The kernels of a function's phase that this machine and the plugins' devices can run.
    std::vector<const catena_kernel*> kernels(const std::string& name, int phase) const;
    // Returns a line for each missing device for which a function has kernels, with the reason.
    std::set<std::string> skipped(const std::string& name) const;
    // The id of the plugin that provides a kernel or a function.
    const std::string& origin(const catena_kernel& kernel) const { return origin_of(&kernel); }
    const std::string& origin(const catena_function& f) const { return origin_of(&f); }
    bool under_test(const catena_kernel& kernel) const { return under_test_id(origin(kernel)); }
    bool under_test(const catena_function& f) const { return under_test_id(origin(f)); }
    // The plugin whose kernel ran last, and the number of runs of kernels.
    const std::string& ran() const;
    std::size_t runs() const;
    // The kernels that ran since the last forget_runs().
    const std::set<const catena_kernel*>& kernels_run() const;
    void forget_runs();

    // Returns the instruction sets of this machine for which a function has a forward kernel;
    // kernels for half precision do not count.
    std::vector<const char*> isas(const std::string& name);

    // Shapes and dtypes of the outputs, as infer() or compose() gives them.
    std::vector<catena_meta> infer(const std::string& name,
                                   const std::vector<std::optional<catena_meta>>& inputs,
                                   const Attrs& attrs = {});
    // The same for inputs that may have no memory. A composition may read those of HOST ports.
    std::vector<catena_meta> infer(const std::string& name, const Arrays& inputs,
                                   const Attrs& attrs = {});
    // Returns the outputs of a call, then the inputs that the function updates. Empty arrays are
    // missing inputs. VIEW functions copy. Without a kernel for the call, compose() runs.
    Arrays forward(const std::string& name, const Arrays& inputs, const Attrs& attrs = {},
                   const Options& options = {});
    // Returns the gradients of the differentiable inputs in options.targets; others are empty. With
    // saved state, the forward kernel runs first, with the random numbers of the last forward().
    Arrays backward(const std::string& name, const Arrays& inputs, const Arrays& outputs,
                    const Arrays& gy, const Attrs& attrs = {}, const Options& options = {});
    // Returns the same gradients from the function's gradient(), or from the parts of its
    // composition, with the random numbers of the last forward().
    Arrays gradient(const std::string& name, const Arrays& inputs, const Arrays& outputs,
                    const Arrays& gy, const Attrs& attrs = {}, const Options& options = {});
    // Gradients of sum(ggx * gradient(...)) with respect to the inputs, then to gy.
    Arrays second(const std::string& name, const Arrays& inputs, const Arrays& outputs,
                  const Arrays& gy, const Arrays& ggx, const Attrs& attrs = {},
                  const Options& options = {});

    static const catena_host& host();
    int threads = 1;
    std::uint64_t seed = 0;
    std::uint64_t drawn = 0;

    struct State;  // internal to the library
    State& state() const { return *state_; }

private:
    const std::string& origin_of(const void* part) const;
    bool under_test_id(const std::string& id) const;

    std::unique_ptr<State> state_;
};

}  // namespace catena::testing
