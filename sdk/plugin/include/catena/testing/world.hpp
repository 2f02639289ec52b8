// A small host for tests of plugins: loads them, runs any of their kernels on host arrays, and calls
// functions on variables without recording a graph. No link to the core.
#pragma once

#include <dlfcn.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "catena/abi/ext/blas.h"
#include "catena/plugin/philox.hpp"
#include "catena/testing/array.hpp"

namespace catena::testing {
class World;
}

// One call in flight: what a kernel sees as its context.
struct catena_ctx {
    catena::testing::World* world;
    std::string error;
    std::deque<std::unique_ptr<catena_var>> vars;
};
struct catena_var {
    catena::testing::Array array;
};
struct catena_callable {
    const catena_function* function;
};

namespace catena::testing {

// A call that failed: its status and the kernel's text.
class Failure : public std::runtime_error {
public:
    Failure(catena_status status, const std::string& text)
        : std::runtime_error(text), status_(status) {}
    catena_status status() const { return status_; }

private:
    catena_status status_;
};

using Attrs = std::vector<catena_named_value>;  // lists and strings stay the caller's
using plugin::set;

struct Options {
    const char* isa = nullptr;     // nullptr: the best that this machine has
    const char* plugin = nullptr;  // the id of the one whose kernel is to run; nullptr: any
    bool add = false;              // to outputs that hold 1 everywhere
    bool train = true;
    int threads = 1;
    std::uint64_t targets = ~std::uint64_t{0};
};

class World {
public:
    explicit World(const std::vector<std::string>& paths) {
        for (const std::string& path : paths) load(path);
    }

    const catena_function& function(const std::string& name) const {
        const auto found = functions_.find(name);
        if (found == functions_.end()) throw Failure(CATENA_E_INVALID, "no function " + name);
        return found->second;
    }
    const std::vector<const catena_kernel*>& kernels() const { return kernels_; }
    // The plugin whose kernel ran last.
    const std::string& ran() const { return ran_; }

    // Instruction sets of this machine for which a function has a forward kernel; those that serve
    // halves on copies do not count.
    std::vector<const char*> isas(const std::string& name) const {
        std::vector<const char*> result;
        const catena_function& f = function(name);
        std::set<std::string> variables;
        for (std::uint32_t i = 0; i < f.n_inputs; ++i) variables.insert(f.inputs[i]->type_var);
        for (std::uint32_t i = 0; i < f.n_outputs; ++i) variables.insert(f.outputs[i]->type_var);
        const auto counts = [&](const catena_kernel& k) {
            return std::none_of(k.types, k.types + variables.size() * (k.n_types == 0 ? 0 : 1),
                                plugin::is_half);
        };
        for (const char* isa : {"", "x86-64-v3", "x86-64-v4"})
            for (const catena_kernel* k : kernels_)
                if (runs(*k) && counts(*k) && name == k->function && std::string(isa) == k->isa) {
                    result.push_back(isa);
                    break;
                }
        return result;
    }

    // Outputs of a call; inputs without a value are missing ones. VIEW functions copy.
    std::vector<Array> forward(const std::string& name, const std::vector<Array>& inputs,
                               const Attrs& attrs = {}, const Options& options = {});
    // Gradients of the inputs in options.targets that are differentiable; the others are empty.
    std::vector<Array> backward(const std::string& name, const std::vector<Array>& inputs,
                                const std::vector<Array>& outputs, const std::vector<Array>& gy,
                                const Attrs& attrs = {}, const Options& options = {});
    // The same through the function's composition of host functions.
    std::vector<Array> gradient(const std::string& name, const std::vector<Array>& inputs,
                                const std::vector<Array>& outputs, const std::vector<Array>& gy,
                                const Attrs& attrs = {}, const Options& options = {});

    const catena_host& host() const { return host_; }
    int threads = 1;
    std::uint64_t seed = 0;
    std::uint64_t drawn = 0;

private:
    static bool runs(const catena_kernel& k) {
        return std::string(k.device) == "cpu" && has(k.isa);
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
    void load(const std::string& path);
    std::vector<catena_value> bind(const catena_function& f, const Attrs& attrs) const;
    // Kernels for these dtypes, best first.
    std::vector<const catena_kernel*> candidates(const catena_function& f, int phase,
                                                 const std::vector<Array>& x,
                                                 const std::vector<Array>& y,
                                                 const Options& options) const;
    static void differ(const std::vector<Array>& arrays, const char* what);
    struct Invocation;

    static World& of(catena_ctx* ctx) { return *ctx->world; }
    static catena_host make_host();

    std::map<std::string, const catena_function&> functions_;
    std::map<std::string, catena_callable> callables_;
    std::vector<const catena_kernel*> kernels_;
    std::map<const catena_kernel*, std::string> origins_;
    std::string ran_;
    catena_host host_ = make_host();
};

// Shape and dtype of the outputs, as the function infers them.
inline std::vector<catena_meta> infer(const catena_function& f, catena_ctx& ctx,
                                      const std::vector<catena_value>& attrs,
                                      const std::vector<Array>& x) {
    std::vector<catena_meta> in;
    for (const Array& a : x) in.push_back(a ? a.meta() : catena_meta{});
    std::vector<const catena_meta*> in_list;
    for (std::size_t i = 0; i < x.size(); ++i) in_list.push_back(x[i] ? &in[i] : nullptr);
    std::vector<catena_meta> out(f.n_outputs);
    std::vector<catena_meta*> out_list;
    for (catena_meta& m : out) {
        m.struct_size = sizeof m;
        out_list.push_back(&m);
    }
    const catena_status status =
        f.infer(&ctx, attrs.data(), in_list.data(), static_cast<std::uint32_t>(x.size()),
                out_list.data(), f.n_outputs);
    if (status != CATENA_OK) throw Failure(status, ctx.error);
    return out;
}

inline void World::load(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed, as in a host
    if (library == nullptr) throw Failure(CATENA_E_INVALID, dlerror());
    const auto* manifest =
        static_cast<const catena_manifest*>(dlsym(library, "catena_manifest_v1"));
    const auto entry = reinterpret_cast<decltype(&catena_plugin_entry_v1)>(
        dlsym(library, "catena_plugin_entry_v1"));
    if (manifest == nullptr || entry == nullptr ||
        std::memcmp(manifest->magic, CATENA_MANIFEST_MAGIC, 8) != 0)
        throw Failure(CATENA_E_INVALID, path + ": no plugin");
    catena_ctx ctx{this, {}, {}};
    const catena_plugin* table = entry(&host_, &ctx);
    if (table == nullptr) throw Failure(CATENA_E_INVALID, ctx.error);
    for (std::uint32_t i = 0; i < table->n_functions; ++i)
        functions_.emplace(table->functions[i]->name, *table->functions[i]);
    kernels_.insert(kernels_.end(), table->kernels, table->kernels + table->n_kernels);
    for (std::uint32_t i = 0; i < table->n_kernels; ++i)
        origins_.emplace(table->kernels[i], manifest->id);
}

inline std::vector<catena_value> World::bind(const catena_function& f, const Attrs& attrs) const {
    std::vector<catena_value> values;
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        std::optional<catena_value> value;
        if ((f.attrs[i]->flags & CATENA_ATTR_REQUIRED) == 0) value = f.attrs[i]->def;
        for (const catena_named_value& given : attrs)
            if (std::string(given.name) == f.attrs[i]->name) {
                value = given.value;
                ++used;
            }
        if (!value || value->kind != f.attrs[i]->kind)
            throw Failure(CATENA_E_INVALID,
                          std::string(f.name) + ": attribute " + f.attrs[i]->name);
        values.push_back(*value);
    }
    if (used != attrs.size()) throw Failure(CATENA_E_INVALID, std::string(f.name) + ": attributes");
    return values;
}

inline std::vector<const catena_kernel*> World::candidates(const catena_function& f, int phase,
                                                           const std::vector<Array>& x,
                                                           const std::vector<Array>& y,
                                                           const Options& options) const {
    std::vector<std::string> variables;
    std::vector<catena_dtype> row;
    const auto visit = [&](const catena_port_spec& port, const Array& a) {
        for (const std::string& v : variables)
            if (v == port.type_var) return;
        variables.emplace_back(port.type_var);
        row.push_back(a.dtype());
    };
    for (std::size_t i = 0; i < x.size(); ++i)
        visit(*f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)], x[i]);
    for (std::size_t i = 0; i < y.size(); ++i) visit(*f.outputs[i], y[i]);
    std::vector<const catena_kernel*> result;
    for (const catena_kernel* k : kernels_) {
        if (std::string(k->function) != f.name || k->phase != phase || !runs(*k)) continue;
        if (options.isa != nullptr && std::string(options.isa) != k->isa) continue;
        if (options.plugin != nullptr && origins_.at(k) != options.plugin) continue;
        for (std::uint32_t r = 0; r < k->n_types; ++r) {
            const catena_dtype* types = k->types + r * row.size();
            bool fits = true;
            for (std::size_t i = 0; i < row.size(); ++i)
                fits = fits && plugin::same(types[i], row[i]);
            if (fits) result.push_back(k);
        }
    }
    std::stable_sort(result.begin(), result.end(),
                     [](auto* a, auto* b) { return a->priority > b->priority; });
    return result;
}

}  // namespace catena::testing

#include "catena/testing/world_calls.hpp"
#include "catena/testing/world_host.hpp"
