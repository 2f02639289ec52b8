// Plugins for the tests, built in memory: tables without a library, two devices, small functions.
#pragma once

#include "registry/registry.hpp"

#include <catena/abi/plugin.h>
#include <catena/core/plugin_function.hpp>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace toys {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int many = 200'000;
#else
inline constexpr int many = 1'000'000;
#endif

using Infer = decltype(catena_function::infer);
using Gradient = decltype(catena_function::gradient);
using Run = decltype(catena_kernel::run);
using Types = std::vector<std::vector<catena::Dtype>>;

struct Port {
    const char* name;
    std::uint32_t flags = 0;
    const char* type = "T";
};

// Collects the tables of one plugin. They are never freed, like the tables of a loaded library.
class Plugin {
public:
    explicit Plugin(std::string id);
    catena_function& function(const char* name, std::initializer_list<Port> inputs,
                              std::initializer_list<Port> outputs, Infer infer);
    catena_attr_spec& attribute(catena_function& function, const char* name, std::int32_t kind);
    // Has rows for float32 and float64 of the only type variable; types() replaces them.
    catena_kernel& kernel(const char* function, Run run, std::int32_t phase = CATENA_PHASE_FORWARD,
                          const char* device = "toy");
    void types(catena_kernel& kernel, const Types& rows);
    catena_backend& backend(const char* name, std::int32_t type, std::uint32_t flags);
    void extension(const char* id, const char* device, std::int32_t priority, const void* table);
    catena_plugin& table();
    // Registers the plugin. Throws PluginError if it is refused.
    const catena::PluginEntry& add();

private:
    struct Tables;
    Tables& tables_;
};

// Reads and writes elements as double, for tensors of any dtype on any toy device.
double get(const catena_tensor& tensor, std::int64_t i);
void put(const catena_tensor& tensor, std::int64_t i, double value,
         std::uint8_t req = CATENA_REQ_WRITE);
std::int64_t count(const catena_tensor& tensor);
catena_status fail(catena_ctx* ctx, catena_status status, const std::string& text);

// Calls a function within gradient().
catena_var* call(catena_ctx* ctx, const char* function, std::initializer_list<catena_var*> x,
                 std::initializer_list<catena_named_value> attributes = {});
catena_value integer(std::int64_t value);
catena_value number(double value);
catena_value integers(const std::vector<std::int64_t>& values);

// Kernels whose outputs and gradients all equal N, so that tests see which kernel ran.
template <int N>
catena_status say(catena_ctx*, const catena_call* c) {
    for (std::int64_t i = 0; i < count(*c->y[0]); ++i) put(*c->y[0], i, N);
    return CATENA_OK;
}
template <int N>
catena_status say_back(catena_ctx*, const catena_call* c) {
    for (std::int64_t i = 0; i < count(*c->gx[0]); ++i) {
        put(*c->gx[0], i, N, c->req[0]);
    }
    return CATENA_OK;
}

// Gives y the shape and dtype of x[0]. All x must have the same shape.
catena_status infer_same(catena_ctx* ctx, const catena_value* attrs, const catena_meta* const* x,
                         std::uint32_t n_x, catena_meta* const* y, std::uint32_t n_y);

// State of a toy device. "toy" (3 devices) has host memory; "vault" (2) is hidden from the host.
struct Memory {
    std::atomic<std::int64_t> allocations{0};
    std::atomic<std::int64_t> live_bytes{0};
    std::atomic<std::int64_t> limit{std::int64_t{1} << 40};
    std::atomic<std::int64_t> copies{0};
    std::atomic<std::int64_t> closed{0};
};
Memory& memory(const std::string& device);

// Counts the calls of a toy function's kernels and gradient(), and records their arguments.
struct Seen {
    std::atomic<int> forward{0};
    std::atomic<int> backward{0};
    std::atomic<int> gradient{0};
    std::atomic<int> adds{0};  // gradients requested with CATENA_REQ_ADD
    std::atomic<std::uint64_t> targets{0};
    std::atomic<std::uint32_t> flags{0};
    std::atomic<std::uint32_t> n_saved{0};
    void clear();
};
Seen& seen(const std::string& function);

// Makes the next forward or backward run of toy.fragile fail.
inline std::atomic<bool> fail_forward{false};
inline std::atomic<bool> fail_backward{false};

// Runs one skipped test case in a separate process with an environment variable. Returns 0 if it
// passed. output: receives its standard output and standard error.
int run_alone(const std::string& test_case, const std::string& variable, const std::string& value,
              std::string* output = nullptr);

// Functions that most tests use.
inline catena::Array floats(std::initializer_list<float> values) {
    return catena::Array::from<float>(values, {static_cast<std::int64_t>(values.size())});
}
inline catena::Array doubles(std::initializer_list<double> values) {
    return catena::Array::from<double>(values, {static_cast<std::int64_t>(values.size())});
}
using Values = std::vector<double>;
inline Values values(const catena::Array& array) { return array.to_vector<double>(); }

// Returns the text of the Error that body throws, else "nothing". Other exceptions pass through.
template <class Error>
std::string what(const auto& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}

// declare() adds a function x -> y. ran() returns the first element of its output.
inline void declare(Plugin& plugin, const char* function) {
    plugin.function(function, {{"x"}}, {{"y"}}, infer_same);
}
inline double ran(const char* function, const catena::Array& x = floats({1, 2})) {
    return values(catena::PluginFunction(function).forward({{x}})[0])[0];
}

inline const catena::PluginFunction add("toy.add"), mul("toy.mul"), sum("toy.sum"),
    twice("toy.twice"), cube("toy.cube");

}  // namespace toys
