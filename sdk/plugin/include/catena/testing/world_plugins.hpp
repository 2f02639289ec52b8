// World's plugins: loading, attributes, and which kernels serve a call.
#pragma once

#include <dlfcn.h>

#include "catena/testing/world.hpp"

namespace catena::testing {

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
    for (std::uint32_t i = 0; i < table->n_functions; ++i) {
        functions_.emplace(table->functions[i]->name, *table->functions[i]);
        origins_.emplace(table->functions[i], manifest->id);
    }
    for (std::uint32_t i = 0; i < table->n_kernels; ++i) {
        const catena_kernel& k = *table->kernels[i];
        kernels_.push_back(&k);
        if (runs(k)) by_phase_[{k.function, k.phase}].push_back(&k);
        origins_.emplace(table->kernels[i], manifest->id);
    }
}

inline std::vector<const char*> World::isas(const std::string& name) const {
    std::vector<const char*> result;
    const std::size_t row = TypeVars(function(name)).size();
    for (const char* isa : {"", "x86-64-v3", "x86-64-v4"})
        for (const catena_kernel* k : kernels(name, CATENA_PHASE_FORWARD)) {
            const std::size_t n = k->n_types == 0 ? 0 : row;
            if (std::string(isa) != k->isa || std::any_of(k->types, k->types + n, plugin::is_half))
                continue;
            result.push_back(isa);
            break;
        }
    return result;
}

// Whether a value is of the schema's kind, range and choices: what a host checks before any call.
inline bool allowed(const catena_attr_spec& spec, const catena_value& v) {
    if (v.kind != spec.kind) return false;
    if (v.kind == CATENA_ATTR_STRING && spec.choices != nullptr) {
        const char* const* choice = spec.choices;
        while (*choice != nullptr && std::strcmp(*choice, v.v.s) != 0) ++choice;
        return *choice != nullptr;
    }
    if ((spec.flags & CATENA_ATTR_RANGED) == 0) return true;
    const auto whole = [&](std::int64_t i) { return spec.lo.v.i <= i && i <= spec.hi.v.i; };
    const auto real = [&](double d) { return spec.lo.v.f <= d && d <= spec.hi.v.f; };
    if (v.kind == CATENA_ATTR_INT) return whole(v.v.i);
    if (v.kind == CATENA_ATTR_FLOAT) return real(v.v.f);
    if (v.kind == CATENA_ATTR_INTS) return std::all_of(v.v.ints, v.v.ints + v.n, whole);
    if (v.kind == CATENA_ATTR_FLOATS) return std::all_of(v.v.floats, v.v.floats + v.n, real);
    return true;
}

inline std::vector<catena_value> World::bind(const catena_function& f, const Attrs& attrs) const {
    std::vector<catena_value> values;
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        std::optional<catena_value> value;
        if ((f.attrs[i]->flags & CATENA_ATTR_REQUIRED) == 0) value = f.attrs[i]->def;
        bool given = false;
        for (const catena_named_value& a : attrs)
            if (std::string(a.name) == f.attrs[i]->name) {
                value = a.value;
                given = true;
                ++used;
            }
        if (!value || (given && !allowed(*f.attrs[i], *value)))
            throw Failure(CATENA_E_INVALID,
                          std::string("[") + f.name + "] " + f.attrs[i]->name +
                              ": expected a value of its kind, range and choices, got " +
                              (value ? "another" : "none"));
        values.push_back(*value);
    }
    if (used != attrs.size())
        throw Failure(CATENA_E_INVALID, std::string("[") + f.name +
                                            "] attributes: expected those of the function, got "
                                            "others");
    return values;
}

inline std::vector<const catena_kernel*> World::candidates(const catena_function& f, int phase,
                                                           const std::vector<Array>& x,
                                                           const std::vector<Array>& y,
                                                           const Options& options) const {
    const TypeVars vars(f);
    std::vector<std::optional<catena_dtype>> wanted(vars.size());
    const auto visit = [&](std::size_t var, const std::string& port, const Array& a) {
        if (!a) return;
        if (wanted[var] && !plugin::same(*wanted[var], a.dtype()))
            throw Failure(CATENA_E_DTYPE, std::string("[") + f.name + "] " + port + ": expected " +
                                              plugin::text_of(*wanted[var]) +
                                              " as the others of its type, got " +
                                              plugin::text_of(a.dtype()));
        wanted[var] = a.dtype();
    };
    for (std::size_t i = 0; i < x.size(); ++i) visit(vars.input(i), input_name(f, i), x[i]);
    for (std::size_t i = 0; i < y.size() && i < f.n_outputs; ++i)
        visit(vars.output(i), f.outputs[i]->name, y[i]);
    std::vector<const catena_kernel*> result;
    for (const catena_kernel* k : kernels(f.name, phase)) {
        if (options.kernel != nullptr && options.kernel != k) continue;
        if (options.isa != nullptr && std::string(options.isa) != k->isa) continue;
        if (options.plugin != nullptr && origin(*k) != options.plugin) continue;
        for (std::uint32_t r = 0; r < k->n_types; ++r) {
            bool fits = true;
            for (std::size_t v = 0; v < wanted.size(); ++v)
                fits = fits &&
                       (!wanted[v] || plugin::same(k->types[r * wanted.size() + v], *wanted[v]));
            if (fits) result.push_back(k);
        }
    }
    if (result.empty()) {
        std::string got;
        for (const auto& dtype : wanted)
            got += (got.empty() ? "" : ", ") + (dtype ? plugin::text_of(*dtype) : "any");
        throw NoKernel(CATENA_E_DTYPE, std::string("[") + f.name + "] kernel: expected one for " +
                                           got + ", got none");
    }
    std::stable_sort(result.begin(), result.end(),
                     [](auto* a, auto* b) { return a->priority > b->priority; });
    return result;
}

inline std::vector<catena_meta> World::infer(const catena_function& f, catena_ctx& ctx,
                                             const std::vector<catena_value>& attrs,
                                             const std::vector<std::optional<catena_meta>>& x) {
    std::vector<const catena_meta*> in_list;
    for (const auto& meta : x) in_list.push_back(meta ? &*meta : nullptr);
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
    for (const catena_meta& m : out)
        if (m.ndim < 0 || m.ndim > CATENA_MAX_NDIM ||
            std::any_of(m.shape, m.shape + m.ndim, [](std::int64_t d) { return d < 0; }))
            throw Failure(CATENA_E_SHAPE,
                          std::string("[") + f.name + "] output: expected a shape, got none");
    return out;
}
inline std::vector<catena_meta> World::infer(const std::string& name,
                                             const std::vector<std::optional<catena_meta>>& inputs,
                                             const Attrs& attrs) {
    const catena_function& f = function(name);
    catena_ctx ctx{this, {}, {}};
    auto x = inputs;
    if (x.size() < f.n_inputs) x.resize(f.n_inputs);
    return infer(f, ctx, bind(f, attrs), x);
}

}  // namespace catena::testing
