// World's plugins: loading, attributes, and which kernels serve a call.
#pragma once

#include "catena/testing/device.hpp"
#include "catena/testing/plain_blas.hpp"
#include "catena/testing/world_host.hpp"

namespace catena::testing {

CATENA_TESTING_INLINE void World::load(const std::string& path, bool given) {
    const auto context = [this] { return catena_ctx{this, {}, {}}; };
    const detail::Library& library = detail::Libraries::get().open(path, host(), context);
    const auto [known, added] = paths_.try_emplace(library.manifest->id, library.path);
    if (!added && given && known->second != library.path)
        throw Failure(CATENA_E_INVALID, "[plugin] " + path + ": id " + known->first +
                                            " is already loaded from " + known->second);
    // catena's own kernels for the functions of others stay out.
    if (added && (given || library.table->n_functions > 0)) add(library, given);
}

CATENA_TESTING_INLINE void World::add(const detail::Library& library, bool given) {
    const catena_plugin& table = *library.table;
    if (given) given_.insert(library.manifest->id);
    for (std::uint32_t i = 0; i < table.n_functions; ++i) {
        const catena_function& f = *table.functions[i];
        if (functions_.emplace(f.name, f).second) {
            origins_.emplace(&f, library.manifest->id);
            if (given) names_.insert(f.name);
        } else if (given) {
            throw Failure(CATENA_E_INVALID, "[plugin] " + library.path + ": function " + f.name +
                                                " is already there, from " +
                                                origin(functions_.at(f.name)));
        }
    }
    for (std::uint32_t i = 0; i < table.n_kernels; ++i) {
        const catena_kernel& k = *table.kernels[i];
        kernels_.push_back(&k);
        if (given) names_.insert(k.function);
        by_phase_[{k.function, k.phase}].push_back(&k);
        origins_.emplace(&k, library.manifest->id);
    }
    for (std::uint32_t i = 0; i < table.n_backends; ++i)
        if (const catena_backend& b = *table.backends[i]; std::strcmp(b.name, "cpu") != 0)
            devices_.emplace(b.name, detail::Device::find(b, *this));  // the CPU is World's own
    for (std::uint32_t i = 0; i < table.n_extensions; ++i)
        extensions_.push_back(table.extensions[i]);
}

CATENA_TESTING_INLINE bool World::runs(const catena_kernel& k) const {
    if (std::strcmp(k.device, "cpu") == 0) return has(k.isa);
    const auto found = devices_.find(k.device);
    if (found == devices_.end() || found->second == nullptr) return false;
    return *k.isa == '\0' || found->second->table.supports_isa(found->second->dev, k.isa) != 0;
}

CATENA_TESTING_INLINE std::vector<const catena_kernel*> World::kernels(const std::string& name,
                                                                       int phase) const {
    std::vector<const catena_kernel*> result;
    if (const auto found = by_phase_.find({name, phase}); found != by_phase_.end())
        for (const catena_kernel* k : found->second)
            if (runs(*k)) result.push_back(k);
    return result;
}

CATENA_TESTING_INLINE std::set<std::string> World::skipped(const std::string& name) const {
    std::set<std::string> lines;
    for (const catena_kernel* k : kernels_) {
        if (name != k->function || std::strcmp(k->device, "cpu") == 0) continue;
        const auto found = devices_.find(k->device);
        if (found == devices_.end())
            lines.insert(std::string("skipped: no device ") + k->device +
                         ": no plugin here has its backend");
        else if (found->second == nullptr)
            lines.insert(std::string("skipped: no device ") + k->device +
                         ": its backend counts none");
    }
    return lines;
}

// Best first. World's own come first on the CPU, so that no other plugin has a part in a test.
CATENA_TESTING_INLINE const void* const* World::extensions(const std::string& device,
                                                           const std::string& id) const {
    std::vector<const catena_extension*> found;
    for (const catena_extension* e : extensions_)
        if (id == e->id && device == e->device) found.push_back(e);
    std::stable_sort(found.begin(), found.end(),
                     [](auto* a, auto* b) { return a->priority > b->priority; });
    std::vector<const void*> tables;
    if (device == "cpu" && id == CATENA_BLAS_1) tables.push_back(&plain_blas);
    for (const catena_extension* e : found) tables.push_back(e->table);
    tables.push_back(nullptr);
    static std::set<std::vector<const void*>> lists;  // for ever, as plugins may keep them
    static std::mutex mutex;                          // worlds may be in different threads
    const std::lock_guard lock(mutex);
    return lists.insert(std::move(tables)).first->data();
}

CATENA_TESTING_INLINE const catena_function& World::function(const std::string& name) {
    auto found = functions_.find(name);
    if (found != functions_.end()) return found->second;
    for (const std::string& file : detail::own_plugins_with(name)) {
        load(file, false);
        if ((found = functions_.find(name)) != functions_.end()) return found->second;
    }
    const std::string folder = detail::own_folder();
    const std::string near = detail::nearest(name, functions_);
    throw Failure(
        CATENA_E_INVALID,
        "[world] " + name + ": expected a function of the loaded plugins" +
            (folder.empty() ? "" : " or of those in " + folder) + ", got none" +
            (near.empty() ? "" : " (did you mean " + near + "?)") +
            (folder.empty() ? "; CATENA_TESTING_PLUGINS names the folder of catena's own" : ""));
}

CATENA_TESTING_INLINE std::vector<const char*> World::isas(const std::string& name) {
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

CATENA_TESTING_INLINE std::vector<catena_value> World::bind(const catena_function& f,
                                                            const Attrs& attrs) const {
    const auto fail = [&](const std::string& attribute, const std::string& text) {
        throw Failure(CATENA_E_INVALID,
                      std::string("[") + f.name + "] attribute '" + attribute + "': " + text);
    };
    std::vector<catena_value> values;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        const catena_attr_spec& spec = *f.attrs[i];
        const catena_named_value* given = nullptr;
        for (const catena_named_value& a : attrs)
            if (std::strcmp(a.name, spec.name) == 0) given = &a;
        if (given == nullptr && (spec.flags & CATENA_ATTR_REQUIRED) != 0)
            fail(spec.name, "expected a value, got none");
        values.push_back(given == nullptr ? spec.def : detail::converted(spec, given->value));
        if (given == nullptr) continue;
        if (const std::string text = detail::refused(spec, values.back()); !text.empty())
            fail(spec.name, text);
    }
    for (const catena_named_value& a : attrs) {
        std::string names;
        for (std::uint32_t i = 0; i < f.n_attrs && !names.ends_with("\n"); ++i)
            if (std::strcmp(f.attrs[i]->name, a.name) == 0) names = "\n";
            else names += std::string(i == 0 ? "" : ", ") + f.attrs[i]->name;
        if (names.ends_with("\n")) continue;
        fail(a.name, names.empty() ? "it has none" : "expected one of " + names);
    }
    return values;
}

CATENA_TESTING_INLINE std::vector<const catena_kernel*> World::candidates(
    const catena_function& f, int phase, const std::vector<Array>& x, const std::vector<Array>& y,
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
        if (options.device != nullptr && std::strcmp(options.device, k->device) != 0) continue;
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
    std::stable_sort(result.begin(), result.end(), [](auto* a, auto* b) {
        const bool far_a = std::strcmp(a->device, "cpu") != 0;
        const bool far_b = std::strcmp(b->device, "cpu") != 0;
        return far_a != far_b ? far_b : a->priority > b->priority;
    });
    return result;
}

CATENA_TESTING_INLINE std::vector<catena_meta> World::infer(
    const catena_function& f, catena_ctx& ctx, const std::vector<catena_value>& attrs,
    const std::vector<std::optional<catena_meta>>& x) {
    std::vector<const catena_meta*> in_list;
    for (const auto& meta : x) in_list.push_back(meta ? &*meta : nullptr);
    std::vector<catena_meta> out(f.n_outputs);
    std::vector<catena_meta*> out_list;
    for (catena_meta& m : out) {
        m.struct_size = sizeof m;
        m.device_type = 1;  // a function without inputs leaves it
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
CATENA_TESTING_INLINE std::vector<catena_meta> World::infer(
    const std::string& name, const std::vector<std::optional<catena_meta>>& inputs,
    const Attrs& attrs) {
    const catena_function& f = function(name);
    catena_ctx ctx{this, {}, {}};
    return infer(f, ctx, bind(f, attrs), complete(f, inputs));
}

}  // namespace catena::testing
