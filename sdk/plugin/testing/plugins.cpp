// World's plugins: loading, attributes, and the selection of kernels for a call.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ids.hpp>
#include <mutex>
#include <ranges>

#include "catena/abi/ext/blas.h"
#include "catena/testing/plain_blas.hpp"
#include "testing/state.hpp"

namespace catena::testing {

bool detail::has_isa(const std::string& isa) {
#if defined(__x86_64__)
    if (isa == "x86-64-v3") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == "x86-64-v4")
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
    return isa.empty();
}

World::World(const std::vector<std::string>& paths, const char* own)
    : state_(std::make_unique<State>(*this)) {
    state_->own = own;
    for (const std::string& path : paths) state_->load(path, true);
}
World::~World() = default;

std::vector<std::string> World::names() const {
    return {state_->names.begin(), state_->names.end()};
}
const std::vector<const catena_kernel*>& World::kernels() const { return state_->kernels; }
const std::string& World::origin_of(const void* part) const { return state_->origins.at(part); }
bool World::under_test_id(const std::string& id) const { return state_->given.contains(id); }
const std::string& World::ran() const { return state_->ran; }
std::size_t World::runs() const { return state_->n_runs; }
const std::set<const catena_kernel*>& World::kernels_run() const { return state_->kernels_run; }
void World::forget_runs() { state_->kernels_run.clear(); }

void World::State::load(const std::string& path, bool is_given) {
    const detail::Library& library = detail::open_library(path, world);
    const auto [known, added] = paths.try_emplace(library.manifest->id, library.path);
    if (!added && is_given && known->second != library.path)
        throw Failure(CATENA_E_INVALID, "[plugin] " + path + ": id " + known->first +
                                            " is already loaded from " + known->second);
    // Leaves out catena's own plugins that have only kernels for other plugins' functions.
    if (added && (is_given || library.table->n_functions > 0)) add(library, is_given);
}

void World::State::add(const detail::Library& library, bool is_given) {
    const catena_plugin& table = *library.table;
    selected.clear();
    if (is_given) given.insert(library.manifest->id);
    for (std::uint32_t i = 0; i < table.n_functions; ++i) {
        const catena_function& f = *table.functions[i];
        if (functions.emplace(f.name, f).second) {
            origins.emplace(&f, library.manifest->id);
            if (is_given) names.insert(f.name);
        } else if (is_given) {
            throw Failure(CATENA_E_INVALID, "[plugin] " + library.path + ": function " + f.name +
                                                " is already registered by " +
                                                world.origin(functions.at(f.name)));
        }
    }
    for (std::uint32_t i = 0; i < table.n_kernels; ++i) {
        const catena_kernel& k = *table.kernels[i];
        kernels.push_back(&k);
        if (is_given) names.insert(k.function);
        by_phase[{k.function, k.phase}].push_back(&k);
        origins.emplace(&k, library.manifest->id);
    }
    for (std::uint32_t i = 0; i < table.n_backends; ++i)
        if (const catena_backend& b = *table.backends[i]; std::strcmp(b.name, "cpu") != 0)
            devices.emplace(b.name, detail::Device::find(b, world));  // the CPU is World's own
    for (std::uint32_t i = 0; i < table.n_extensions; ++i)
        all_extensions.push_back(table.extensions[i]);
}

bool World::State::runs(const catena_kernel& k) const {
    if (detail::on_cpu(k)) return detail::has_isa(k.isa);
    const detail::Device* device = device_of(k);
    if (device == nullptr) return false;
    return *k.isa == '\0' || device->table.supports_isa(device->dev, k.isa) != 0;
}

std::vector<const catena_kernel*> World::kernels(const std::string& name, int phase) const {
    std::vector<const catena_kernel*> result;
    if (const auto found = state_->by_phase.find({name, phase}); found != state_->by_phase.end())
        for (const catena_kernel* k : found->second)
            if (state_->runs(*k)) result.push_back(k);
    return result;
}

std::set<std::string> World::skipped(const std::string& name) const {
    std::set<std::string> lines;
    for (const catena_kernel* k : state_->kernels) {
        if (name != k->function || detail::on_cpu(*k) || state_->device_of(*k) != nullptr) continue;
        const bool brought = state_->devices.contains(k->device);
        lines.insert(std::string("skipped: no device ") + k->device +
                     (brought ? ": its backend counts none" : ": no plugin here has its backend"));
    }
    return lines;
}

// Returns the best tables first. On the CPU, World's own is first: tests use no other plugin.
const void* const* World::State::extensions(const std::string& device,
                                            const std::string& id) const {
    std::vector<const catena_extension*> found;
    for (const catena_extension* e : all_extensions)
        if (id == e->id && device == e->device) found.push_back(e);
    std::stable_sort(found.begin(), found.end(),
                     [](auto* a, auto* b) { return a->priority > b->priority; });
    std::vector<const void*> tables;
    if (device == "cpu" && id == CATENA_BLAS_1) tables.push_back(&plain_blas);
    for (const catena_extension* e : found) tables.push_back(e->table);
    tables.push_back(nullptr);
    static std::set<std::vector<const void*>> lists;  // never freed: plugins may keep them
    static std::mutex mutex;                          // worlds may be in different threads
    const std::lock_guard lock(mutex);
    return lists.insert(std::move(tables)).first->data();
}

const catena_function& World::function(const std::string& name) {
    auto& functions = state_->functions;
    auto found = functions.find(name);
    if (found != functions.end()) return found->second;
    const char* const set = std::getenv("CATENA_TESTING_PLUGINS");
    const std::string folder = set != nullptr ? set : state_->own;
    for (const std::string& file : detail::plugins_with(name, folder)) {
        state_->load(file, false);
        if ((found = functions.find(name)) != functions.end()) return found->second;
    }
    const std::string near = nearest_name(name, std::views::keys(functions), name.size() / 4 + 2);
    throw Failure(
        CATENA_E_INVALID,
        "[world] " + name + ": expected a function of the loaded plugins" +
            (folder.empty() ? "" : " or of those in " + folder) + ", got none" +
            (near.empty() ? "" : " (did you mean " + near + "?)") +
            (folder.empty() ? "; CATENA_TESTING_PLUGINS names the folder of catena's own" : ""));
}

std::vector<const char*> World::isas(const std::string& name) {
    std::vector<const char*> result;
    const std::size_t row = detail::TypeVars(function(name)).size();
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

std::vector<catena_value> World::State::bind(const catena_function& f, const Attrs& attrs) const {
    const auto fail = [&](const std::string& attribute, const std::string& text) {
        throw Failure(CATENA_E_INVALID,
                      std::string("[") + f.name + "] attribute '" + attribute + "': " + text);
    };
    std::vector<catena_value> values;
    std::string known;
    std::set<std::string> specs;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        const catena_attr_spec& spec = *f.attrs[i];
        specs.insert(spec.name);
        known += (known.empty() ? "" : ", ") + std::string(spec.name);
        const catena_named_value* value = nullptr;
        for (const catena_named_value& a : attrs)
            if (std::strcmp(a.name, spec.name) == 0) value = &a;
        if (value == nullptr && (spec.flags & CATENA_ATTR_REQUIRED) != 0)
            fail(spec.name, "expected a value, got none");
        values.push_back(value == nullptr ? spec.def : detail::converted(spec, value->value));
        if (value == nullptr) continue;
        if (const std::string text = detail::refused(spec, values.back()); !text.empty())
            fail(spec.name, text);
    }
    for (const catena_named_value& a : attrs)
        if (!specs.contains(a.name))
            fail(a.name, known.empty() ? "it has none" : "expected one of " + known);
    return values;
}

detail::Dtypes detail::check_types(const catena_function& f, const Metas& x, const Metas& y) {
    const TypeVars vars(f);
    Dtypes dtypes(vars.size());
    const auto visit = [&](std::size_t var, const std::string& port,
                           const std::optional<catena_meta>& meta) {
        if (!meta) return;
        if (dtypes[var] && !plugin::same(*dtypes[var], meta->dtype))
            refuse(f, CATENA_E_DTYPE, port,
                   plugin::text_of(*dtypes[var]) + " as the others of its type", meta->dtype);
        dtypes[var] = meta->dtype;
    };
    for (std::size_t i = 0; i < x.size(); ++i) visit(vars.input(i), input_name(f, i), x[i]);
    for (std::size_t i = 0; i < y.size() && i < f.n_outputs; ++i)
        visit(vars.output(i), f.outputs[i]->name, y[i]);
    return dtypes;
}
std::string detail::text_of(const Dtypes& dtypes, const char* comma) {
    std::string text;
    for (const auto& dtype : dtypes)
        text += (text.empty() ? "" : comma) + (dtype ? plugin::text_of(*dtype) : "any");
    return text;
}

std::vector<const catena_kernel*> World::State::candidates(const catena_function& f, int phase,
                                                           const detail::Metas& x,
                                                           const detail::Metas& y,
                                                           const Options& options) const {
    const bool any = options.kernel == nullptr && options.isa == nullptr &&
                     options.plugin == nullptr && options.device == nullptr;
    std::vector<std::uint64_t> key = {reinterpret_cast<std::uintptr_t>(&f),
                                      static_cast<std::uint64_t>(phase), x.size()};
    for (const detail::Metas* metas : {&x, &y})
        for (const auto& m : *metas)
            key.push_back(m ? std::uint64_t{1} << 32 | std::bit_cast<std::uint32_t>(m->dtype) : 0);
    if (const auto known = selected.find(key); any && known != selected.end()) return known->second;
    const auto dtypes = detail::check_types(f, x, y);
    std::vector<const catena_kernel*> result;
    for (const catena_kernel* k : world.kernels(f.name, phase)) {
        if (options.kernel != nullptr && options.kernel != k) continue;
        if (options.isa != nullptr && std::string(options.isa) != k->isa) continue;
        if (options.plugin != nullptr && world.origin(*k) != options.plugin) continue;
        if (options.device != nullptr && std::strcmp(options.device, k->device) != 0) continue;
        if (detail::fits(f, *k, x, y)) result.push_back(k);
    }
    if (result.empty())
        detail::refuse<NoKernel>(f, CATENA_E_DTYPE, "kernel",
                                 "one for " + detail::text_of(dtypes, ", "), "none");
    std::stable_sort(result.begin(), result.end(), [](auto* a, auto* b) {
        const bool far_a = !detail::on_cpu(*a), far_b = !detail::on_cpu(*b);
        return far_a != far_b ? far_b : a->priority > b->priority;
    });
    if (any) selected.emplace(std::move(key), result);
    return result;
}

std::vector<const catena_kernel*> World::State::before(const catena_kernel& backward,
                                                       const detail::Metas& x,
                                                       const detail::Metas& y) const {
    std::vector<const catena_kernel*> result;
    if (backward.phase != CATENA_PHASE_BACKWARD || backward.variant == nullptr) return result;
    const auto same = [](const char* a, const char* b) { return std::strcmp(a, b) == 0; };
    const catena_function& f = functions.at(backward.function);
    for (const catena_kernel* k : world.kernels(backward.function, CATENA_PHASE_FORWARD))
        if (k->variant != nullptr && same(k->variant, backward.variant) &&
            world.origin(*k) == world.origin(backward) && same(k->isa, backward.isa) &&
            same(k->device, backward.device) && detail::fits(f, *k, x, y))
            result.push_back(k);
    return result;
}

}  // namespace catena::testing
