// Describes plugins as JSON: manifests without running their code, and tables of loaded plugins.
#include "inspect.hpp"

#include <catena/core/device.hpp>
#include <catena/core/dtype.hpp>
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/core/tables.hpp>
#include <catena/data_error.hpp>

#include <catena/abi/ext/draft/about.h>

#include <fmt/ranges.h>
#include <elf_tables.hpp>
#include <nlohmann/json.hpp>
#include <table_rules.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

namespace catena::inspect {
namespace {

Json split(const std::string& list) {
    Json words = Json::array();
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) words.push_back(word);
    return words;
}

std::vector<std::string> exports(const ElfTables& file) {
    std::vector<std::string> names;
    for (const ElfTables::Symbol& symbol : file.symbols(SHT_DYNSYM))
        if (symbol.defined && !symbol.absolute && symbol.binding != STB_LOCAL)
            names.push_back(symbol.name);
    std::ranges::sort(names);
    return names;
}

// Returns "sha256", and "refused": why this catena would not load the file, or null.
Json judgement(const std::filesystem::path& file) {
    Json result{{"sha256", ""}, {"refused", nullptr}};
    try {
        result["sha256"] = plugin_sha256(file);  // refuses files that others can change
        read_manifest(file);
    } catch (const Error& error) {
        const std::string text = error.what(), prefix = file.string() + ": ";
        result["refused"] = text.starts_with(prefix) ? text.substr(prefix.size()) : text;
    }
    return result;
}

Json manifest(const std::filesystem::path& file) {
    const ElfTables library(file);
    const catena_manifest m = manifest_of(library);
    Json result{{"file", file.string()}};
    Json abi{{"major", m.abi_major}};
    // Manifests of another major version may have other fields after the version.
    if (m.abi_major == CATENA_ABI_MAJOR) {
        result.update({{"id", field_text(m.id)},
                       {"version", field_text(m.version)},
                       {"vendor", field_text(m.vendor)},
                       {"license", field_text(m.license)},
                       {"devices", split(field_text(m.devices))}});
        abi.update({{"built", m.abi_minor_built}, {"needed", m.abi_minor_needed}});
    }
    result.update({{"abi", abi},
                   {"size", library.size()},
                   {"machine", library.machine()},
                   {"build_id", library.build_id()},
                   {"needs", library.strings(DT_NEEDED)},
                   {"exports", exports(library)}});
    result.update(judgement(file));
    return result;
}

using Names = std::vector<std::string>;
using Words = std::initializer_list<std::pair<std::uint32_t, const char*>>;

// Returns the results of make() for the items of a list.
template <class List, class Make>
Json array(const List& list, const Make& make) {
    Json result = Json::array();
    for (const auto& item : list) result.push_back(make(item));
    return result;
}

Json words(std::uint32_t flags, const Words& names) {
    Json list = Json::array();
    for (const auto& [flag, name] : names)
        if (has(flags, flag)) list.push_back(name);
    return list;
}

std::string c_text(const char* s) { return s ? s : ""; }

// Whether the list contains the name. An empty list chooses everything.
bool chosen(const Names& list, std::string_view name) {
    return list.empty() || std::ranges::count(list, name) > 0;
}

std::vector<PluginTable> chosen_tables(const Choice& choice) {
    auto tables = plugin_tables();
    std::erase_if(tables, [&](const auto& t) { return !chosen(choice.plugins, t.id); });
    return tables;
}

// Returns null if no plugin has the function.
const catena_function* find(std::string_view name) {
    try {
        return &function_descriptor(name);
    } catch (const PluginError&) {
        return nullptr;
    }
}

Json rows(const catena_kernel& kernel) {
    const catena_function* f = find(kernel.function);
    const std::size_t columns = f ? type_vars(*f).size() : 0;
    Json list = Json::array();
    for (std::size_t row = 0; columns > 0 && row < kernel.n_types; ++row)
        list.push_back(array(std::span(kernel.types + row * columns, columns),
                             [](const catena_dtype& dtype) { return name(dtype); }));
    return list;
}

// Returns NaN and infinity as text, since JSON has no such numbers.
Json json_number(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

Json value(const catena_value& v) {
    switch (v.kind) {
        case CATENA_ATTR_INT: return v.v.i;
        case CATENA_ATTR_FLOAT: return json_number(v.v.f);
        case CATENA_ATTR_BOOL: return v.v.i != 0;
        case CATENA_ATTR_STRING: return c_text(v.v.s);
        case CATENA_ATTR_INTS: return std::vector<std::int64_t>(v.v.ints, v.v.ints + v.n);
        case CATENA_ATTR_FLOATS: return array(std::span(v.v.floats, v.n), json_number);
        case CATENA_ATTR_DTYPE: return name(v.v.dtype);
        default: return nullptr;
    }
}

const char* kind(std::int32_t kind) {
    constexpr const char* names[] = {"?",      "int",  "float",  "bool",
                                     "string", "ints", "floats", "dtype"};
    return kind >= CATENA_ATTR_INT && kind <= CATENA_ATTR_DTYPE ? names[kind] : names[0];
}

Json port(const catena_port_spec* p) {
    return {{"name", p->name},
            {"type", p->type_var},
            {"flags", words(p->flags, {{CATENA_PORT_OPTIONAL, "optional"},
                                       {CATENA_PORT_VARIADIC, "variadic"},
                                       {CATENA_PORT_NON_DIFFERENTIABLE, "non_differentiable"},
                                       {CATENA_PORT_MUTATED, "mutated"},
                                       {CATENA_PORT_HIDDEN, "hidden"}})},
            {"doc", c_text(p->doc)}};
}

Json attribute(const catena_attr_spec* a) {
    Json result{{"name", a->name},
                {"kind", kind(a->kind)},
                {"flags", words(a->flags,
                                {{CATENA_ATTR_REQUIRED, "required"}, {CATENA_ATTR_HINT, "hint"}})}};
    if (!has(a->flags, CATENA_ATTR_REQUIRED)) result["default"] = value(a->def);
    if (has(a->flags, CATENA_ATTR_RANGED))
        result["range"] = Json::array({value(a->lo), value(a->hi)});
    for (auto choice = a->choices; choice && *choice; ++choice)
        result["choices"].push_back(*choice);
    result["doc"] = c_text(a->doc);
    return result;
}

Json retained(const catena_function& f) {
    Json names = Json::array();
    const auto add = [&](std::uint64_t bits, std::span<const catena_port_spec* const> list) {
        for (std::size_t i = 0; i < list.size(); ++i)
            if (bits >> i & 1) names.push_back(list[i]->name);
    };
    add(f.retain_x, inputs(f));
    add(f.retain_y, outputs(f));
    return names;
}

// Returns how often a function can be differentiated. Follows functions that are gradients.
std::string order(const catena_function& f, bool kernel, int depth = 0) {
    if (has(f.flags, CATENA_FUNCTION_NOT_DIFFERENTIABLE)) return "none";
    if (f.gradient || depth > 8) return "any";
    if (f.compose && !f.grad_function && !kernel) return "any";
    if (f.grad_function) {
        const catena_function* g = find(f.grad_function);
        const bool further = g && order(*g, false, depth + 1) == "any";
        return further ? "any" : "first";
    }
    return kernel ? "first" : "none";
}

Json gradient(const catena_function& f, bool kernel) {
    Json routes = Json::array();
    if (kernel) routes.push_back("kernel");
    if (f.gradient) routes.push_back("composition");
    if (f.grad_function) routes.push_back("function");
    if (f.compose && routes.empty()) routes.push_back("parts");
    Json result{{"order", order(f, kernel)}, {"routes", routes}};
    if (f.grad_function) result["function"] = f.grad_function;
    result["keeps"] = retained(f);
    return result;
}

Json function(const catena_function& f, const std::string& plugin, const Names& from) {
    bool backward = false;
    Json dtypes = Json::object();
    for (const auto& table : chosen_tables({from, {}})) {
        for (const auto* kernel : std::span(table.table->kernels, table.table->n_kernels)) {
            if (std::string_view(kernel->function) != f.name) continue;
            backward |= kernel->phase == CATENA_PHASE_BACKWARD;
            if (kernel->phase != CATENA_PHASE_FORWARD) continue;
            Json& list = dtypes[kernel->device];
            for (const auto& row : rows(*kernel))
                if (std::ranges::count(list, row) == 0) list.push_back(row);
        }
    }
    Json examples = Json::array();
    for (auto e = f.examples; e && *e; ++e) examples.push_back(*e);
    return {{"name", f.name},
            {"plugin", plugin},
            {"version", f.version},
            {"doc", c_text(f.doc)},
            {"flags", words(f.flags, {{CATENA_FUNCTION_STOCHASTIC, "stochastic"},
                                      {CATENA_FUNCTION_VIEW, "view"},
                                      {CATENA_FUNCTION_ELEMENTWISE, "elementwise"},
                                      {CATENA_FUNCTION_NOT_DIFFERENTIABLE, "not_differentiable"},
                                      {CATENA_FUNCTION_ADDITION, "addition"},
                                      {CATENA_FUNCTION_INTERNAL, "internal"},
                                      {CATENA_FUNCTION_PROMOTES, "promotes"}})},
            {"cpp", cpp_signature(f)},
            {"inputs", array(inputs(f), port)},
            {"outputs", array(outputs(f), port)},
            {"attributes", array(attributes(f), attribute)},
            {"gradient", gradient(f, backward)},
            {"types", type_vars(f)},
            {"composition", f.compose != nullptr},
            {"dtypes", dtypes},
            {"examples", examples}};
}

Json kernel(const catena_kernel& k, const std::string& plugin) {
    Json result{{"function", k.function},
                {"phase", k.phase == CATENA_PHASE_FORWARD ? "forward" : "backward"},
                {"device", k.device},
                {"isa", c_text(k.isa)},
                {"name", c_text(k.name)},
                {"priority", k.priority},
                {"variant", c_text(k.variant)},
                {"plugin", plugin},
                {"versions", Json::array({k.version_min, k.version_max})},
                {"flags", words(k.flags, {{CATENA_KERNEL_ADDS, "adds"},
                                          {CATENA_KERNEL_STRIDED, "strided"},
                                          {CATENA_KERNEL_DETERMINISTIC, "deterministic"}})}};
    const catena_function* f = find(k.function);
    result["types"] = f ? type_vars(*f) : Names{};
    result["dtypes"] = rows(k);
    return result;
}

// Returns the plugin and name of a kernel, without instruction set: "connection (formula)".
std::string kernel_name(const Json& k) {
    std::string plugin = text(k, "plugin");
    if (plugin.starts_with("org.catena.")) plugin.erase(0, 11);
    const std::string name = text(k, "name");
    return name.empty() ? plugin : fmt::format("{} ({})", plugin, name);
}

// Returns "connection; onednn, forward": the kernels in the order in which they are tried.
std::string names_of(const std::vector<const Json*>& kernels) {
    std::vector<std::string> names;
    std::map<std::string, std::set<std::string>> phases;
    for (const Json* k : kernels) {
        const std::string name = kernel_name(*k);
        if (std::ranges::count(names, name) == 0) names.push_back(name);
        phases[name].insert(text(*k, "phase"));
    }
    const bool differentiable =
        std::ranges::any_of(kernels, [](const Json* k) { return text(*k, "phase") == "backward"; });
    for (std::string& name : names) {
        const auto& own = phases[name];
        if (own.size() == 1 && differentiable) name += ", " + *own.begin();
    }
    return fmt::format("{}", fmt::join(names, "; "));
}

}  // namespace

Json manifests(const std::vector<std::filesystem::path>& files) {
    Json list = Json::array();
    for (const auto& file : files) {
        try {
            list.push_back(naming_file("manifest", file, [&] { return manifest(file); }));
        } catch (const MemoryError&) {
            throw;  // not a fault of the file
        } catch (const Error& error) {
            list.push_back({{"file", file.string()}, {"error", error.what()}});
        }
    }
    return {{"manifests", list}};
}

PluginReport load_plugins_of(const Names& files, const Names& folders, const Names& without) {
    for (const auto& id : without) leave_out_plugin(id);
    for (const auto& file : files) naming_file("load", file, [&] { load_plugin(file); });
    if (folders.empty()) load_default_plugins();
    else disable_default_plugins();
    for (const auto& folder : folders) load_plugins(folder);
    PluginReport report = plugin_report();
    Names ids;
    for (const LoadedPlugin& plugin : report.loaded) ids.push_back(plugin.id);
    for (const auto& id : without)
        if (std::ranges::count(report.left_out, id, &LoadedPlugin::id) == 0)
            throw InvalidError(fmt::format("[without] expected a loaded plugin ({}), got {}",
                                           fmt::join(ids, ", "), id));
    return report;
}

Json functions(const Choice& choice) {
    Json list = Json::array();
    auto tables = chosen_tables(choice);
    std::ranges::sort(tables, {}, &PluginTable::id);
    for (const auto& [id, table] : tables) {
        Names names;
        for (const auto* f : std::span(table->functions, table->n_functions))
            if (chosen(choice.functions, f->name)) names.emplace_back(f->name);
        std::ranges::sort(names);
        for (const auto& name : names)
            list.push_back(function(function_descriptor(name), id, choice.plugins));
    }
    return {{"functions", list}};
}

Json kernels(const Choice& choice) {
    // In the order in which the host tries them: by priority, then in the order of loading.
    using Key = std::tuple<std::string, int, std::string, std::int64_t, std::size_t, std::string,
                           std::string, std::string, std::uint32_t, std::uint32_t, std::uint32_t>;
    std::map<Key, Json> merged;
    const auto tables = chosen_tables(choice);
    for (std::size_t i = 0; i < tables.size(); ++i) {
        const auto& [id, table] = tables[i];
        for (const auto* k : std::span(table->kernels, table->n_kernels)) {
            if (!chosen(choice.functions, k->function)) continue;
            const Key key{
                k->function, k->phase,       k->device,          -std::int64_t{k->priority},
                i,           c_text(k->isa), c_text(k->variant), c_text(k->name),
                k->flags,    k->version_min, k->version_max};
            const auto [entry, added] = merged.try_emplace(key, kernel(*k, id));
            if (added) continue;
            for (const auto& row : rows(*k)) entry->second["dtypes"].push_back(row);
        }
    }
    Json list = Json::array();
    for (auto& [key, json] : merged) list.push_back(std::move(json));
    return {{"kernels", list}};
}

Json coverage(const Choice& choice) {
    const Json all = kernels(choice), described = functions(choice);
    std::set<std::string> devices;
    // By function, row of dtypes and device.
    std::map<std::string, std::map<Row, std::map<std::string, std::vector<const Json*>>>> found;
    for (const Json& k : all["kernels"]) {
        devices.insert(text(k, "device"));
        for (const auto& row : k["dtypes"])
            found[text(k, "function")][row.get<Row>()][text(k, "device")].push_back(&k);
    }
    Json list = Json::array();
    for (const Json& f : described["functions"]) {
        const std::string name = text(f, "name");
        // Rows of dtypes that have the same kernels on all devices share a line.
        std::vector<std::pair<Json, std::vector<Row>>> lines;
        for (auto& [row, by_device] : found[name]) {
            Json cells = Json::object();
            for (const std::string& device : devices) {
                const auto& kernels = by_device[device];
                const bool parts = kernels.empty() && f["composition"];
                cells[device] = parts ? "composition" : names_of(kernels);
            }
            const auto same =
                std::ranges::find(lines, cells, [](const auto& line) { return line.first; });
            if (same == lines.end()) lines.push_back({cells, {row}});
            else same->second.push_back(row);
        }
        Json own = Json::array();
        for (const auto& [cells, group] : lines)
            own.push_back({{"dtypes", dtypes_text(name, group)}, {"devices", cells}});
        list.push_back({{"function", name}, {"flags", f["flags"]}, {"kernels", own}});
    }
    return {{"coverage", list}, {"devices", devices}};
}

Json devices(const Choice& choice) {
    Json backends = Json::array();
    std::vector<Json> extensions;  // highest priority first
    const auto names = Device::list();
    for (const auto& [id, table] : chosen_tables(choice)) {
        for (const auto* b : std::span(table->backends, table->n_backends)) {
            Json found = Json::array();
            for (const auto& name : names) {
                if (!name.starts_with(c_text(b->name) + ":")) continue;
                Json device{{"name", name}};
                try {
                    const Device opened = Device::get(name);
                    device["threads"] = opened.threads();
                    if (const void* t = backend_extension(opened, CATENA_ABOUT_DRAFT_1))
                        device["about"] =
                            static_cast<const catena_about*>(t)->text(backend_device(opened));
                } catch (const Error& error) {
                    device["error"] = error.what();
                }
                found.push_back(device);
            }
            std::string reason;
            for (const BackendInfo& info : Device::backends())
                if (info.name == b->name) reason = info.reason;
            backends.push_back(
                {{"name", b->name},
                 {"plugin", id},
                 {"doc", c_text(b->doc)},
                 {"flags", words(b->flags, {{CATENA_BACKEND_HOST_MEMORY, "host_memory"},
                                            {CATENA_BACKEND_ASYNC, "async"}})},
                 {"devices", found}});
            if (found.empty()) backends.back()["reason"] = reason;
        }
        for (const auto* e : std::span(table->extensions, table->n_extensions))
            extensions.push_back(
                {{"id", e->id}, {"device", e->device}, {"priority", e->priority}, {"plugin", id}});
    }
    std::ranges::stable_sort(extensions, {}, [](const Json& e) {
        return std::tuple(e["id"].get<std::string>(), e["device"].get<std::string>(),
                          -e["priority"].get<std::int64_t>());
    });
    return {{"backends", backends}, {"extensions", extensions}};
}

Json plugins(const Choice&) {
    const PluginReport report = plugin_report();
    const auto shown = [](const LoadedPlugin& p) -> Json {
        return {{"id", p.id},
                {"version", p.version},
                {"vendor", p.vendor},
                {"file", p.path.string()},
                {"sha256", p.sha256},
                {"functions", p.n_functions},
                {"kernels", p.n_kernels},
                {"backends", p.n_backends}};
    };
    const auto folder = [](const SearchedFolder& searched) -> Json {
        return {{"folder", searched.path.string()}, {"from", searched.from}};
    };
    const auto refused = [](const auto& p) -> Json {
        return {{"file", p.path.string()}, {"reason", p.reason}};
    };
    const auto overridden = [&](const auto& entry) {
        Json result = shown(entry.plugin);
        result["by"] = entry.by.string();
        return result;
    };
    return {{"searched", array(report.searched, folder)},
            {"loaded", array(report.loaded, shown)},
            {"refused", array(report.refused, refused)},
            {"left_out", array(report.left_out, shown)},
            {"overridden", array(report.overridden, overridden)}};
}

}  // namespace catena::inspect
