// Whether a plugin's table can be walked at all.
#include "plugin.hpp"

#include <fmt/format.h>

#include <abi_sizes.hpp>
#include <limits.hpp>

#include <algorithm>
#include <set>

namespace catena::check {
namespace {

struct Damage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void need(bool good, const std::string& text) {
    if (!good) throw Damage(text);
}

// Of the headers that the plugin was built with, as its manifest says; of newer ones than these
// only the bound is known.
struct Headers {
    bool known;
    template <class T>
    std::uint32_t largest() const {
        return known ? static_cast<std::uint32_t>(sizeof(T)) : largest_struct;
    }
};

template <class T>
void size(const T& item, const std::string& what, Headers headers) {
    constexpr std::uint32_t least = size_1_0<T>;
    need(item.struct_size >= least, fmt::format("{}: struct_size: expected at least {}, got {}",
                                                what, least, item.struct_size));
    need(item.struct_size <= headers.largest<T>(),
         fmt::format("{}: struct_size: expected at most {}{}, got {}", what, headers.largest<T>(),
                     headers.known ? ", as in the ABI that its manifest names" : "",
                     item.struct_size));
}

template <class T, class Body>
void each(const T* const* list, std::uint32_t n, const std::string& what, Headers headers,
          const Body& body) {
    need(n <= most_entries,
         fmt::format("{}: expected at most {} entries, got {}", what, most_entries, n));
    need(n == 0 || list != nullptr, fmt::format("{}: expected {} entries, got NULL", what, n));
    for (std::uint32_t i = 0; i < n; ++i) {
        need(list[i] != nullptr, fmt::format("{} {}: expected an entry, got NULL", what, i));
        size(*list[i], fmt::format("{} {}", what, i), headers);
        body(*list[i], fmt::format("{} {}", what, i));
    }
}

void text(const char* value, const std::string& what) {
    need(value != nullptr, fmt::format("{}: expected a text, got NULL", what));
}

void function(const catena_function& f, const std::string& what, Headers headers) {
    text(f.name, what + ".name");
    const std::string name = f.name;
    text(f.doc, name + ".doc");
    need(f.infer != nullptr, name + ": expected infer(), got NULL");
    need(f.n_inputs <= CATENA_MAX_PORTS && f.n_outputs <= CATENA_MAX_PORTS,
         fmt::format("{}: expected at most {} ports, got {} and {}", name, +CATENA_MAX_PORTS,
                     f.n_inputs, f.n_outputs));
    for (const bool in : {true, false})
        each(in ? f.inputs : f.outputs, in ? f.n_inputs : f.n_outputs,
             name + (in ? ".inputs" : ".outputs"), headers,
             [](const catena_port_spec& p, const std::string& port) {
                 text(p.name, port + ".name");
                 text(p.doc, port + ".doc");
                 text(p.type_var, port + ".type_var");
             });
    need(f.n_attrs <= CATENA_MAX_ATTRS, fmt::format("{}: expected at most {} attributes, got {}",
                                                    name, +CATENA_MAX_ATTRS, f.n_attrs));
    each(f.attrs, f.n_attrs, name + ".attrs", headers,
         [](const catena_attr_spec& a, const std::string& attr) {
             text(a.name, attr + ".name");
             text(a.doc, attr + ".doc");
             need(a.kind >= CATENA_ATTR_INT && a.kind <= CATENA_ATTR_DTYPE,
                  fmt::format("{}: expected a kind that there is, got {}", attr, a.kind));
             std::uint32_t n = 0;
             while (a.choices != nullptr && a.choices[n] != nullptr && n <= most_choices) ++n;
             need(n <= most_choices,
                  fmt::format("{}: expected at most {} choices, then NULL, got more", attr,
                              most_choices));
             if ((a.flags & CATENA_ATTR_REQUIRED) != 0) return;
             need(a.def.kind == a.kind, fmt::format("{}: expected a default of kind {}, got {}",
                                                    attr, a.kind, a.def.kind));
             const bool list = a.kind == CATENA_ATTR_INTS || a.kind == CATENA_ATTR_FLOATS;
             need(!list || a.def.n <= longest_list,
                  fmt::format("{}: expected a default of at most {} values, got {}", attr,
                              longest_list, a.def.n));
             if (a.kind == CATENA_ATTR_STRING || (list && a.def.n > 0))
                 need(a.def.v.s != nullptr, attr + ": expected a default, got NULL");
         });
}

// Different type variables of the function that a kernel is for; the most that there are for a
// function of another plugin.
std::uint32_t type_vars(const catena_plugin& t, const catena_kernel& k) {
    for (std::uint32_t i = 0; i < t.n_functions; ++i) {
        const catena_function& f = *t.functions[i];
        if (std::strcmp(f.name, k.function) != 0) continue;
        std::set<std::string> names;
        for (std::uint32_t p = 0; p < f.n_inputs; ++p) names.insert(f.inputs[p]->type_var);
        for (std::uint32_t p = 0; p < f.n_outputs; ++p) names.insert(f.outputs[p]->type_var);
        return std::min<std::uint32_t>(static_cast<std::uint32_t>(names.size()),
                                       CATENA_MAX_TYPE_VARS);
    }
    return CATENA_MAX_TYPE_VARS;
}

void kernel(const catena_plugin& t, const catena_kernel& k, const std::string& what) {
    text(k.function, what + ".function");
    const std::string name = fmt::format("{} (of {})", what, k.function);
    text(k.device, name + ".device");
    text(k.isa, name + ".isa");
    need(k.run != nullptr, name + ": expected run(), got NULL");
    need(k.phase == CATENA_PHASE_FORWARD || k.phase == CATENA_PHASE_BACKWARD,
         fmt::format("{}: expected a phase that there is, got {}", name, k.phase));
    const std::uint32_t rows = most_rows(type_vars(t, k));
    need(k.n_types <= rows,
         fmt::format("{}: n_types: expected at most {}, got {}", name, rows, k.n_types));
    need(k.n_types == 0 || k.types != nullptr,
         fmt::format("{}: expected {} rows of types, got NULL", name, k.n_types));
    need(k.n_saved <= most_saved,
         fmt::format("{}: n_saved: expected at most {}, got {}", name, most_saved, k.n_saved));
    need(k.n_saved == 0 || k.phase == CATENA_PHASE_BACKWARD || k.plan != nullptr,
         name + ": it saves tensors: expected plan(), got NULL");
}

void backend(const catena_backend& b, const std::string& what) {
    text(b.name, what + ".name");
    need(b.count && b.open && b.close && b.supports_isa && b.alloc && b.free && b.copy && b.sync,
         fmt::format("{} ({}): expected count, open, close, supports_isa, alloc, free, copy and "
                     "sync, got NULL among them",
                     what, b.name));
    // DLDeviceType of DLPack 1.1.
    need(
        b.dlpack_type >= 1 && b.dlpack_type <= 18 && b.dlpack_type != 5 && b.dlpack_type != 6,
        fmt::format("{} ({}): dlpack_type: expected a DLDeviceType, such as 12 (kDLExtDev), got {}",
                    what, b.name, b.dlpack_type));
    constexpr std::uint32_t flags = CATENA_BACKEND_HOST_MEMORY | CATENA_BACKEND_ASYNC;
    need((b.flags & ~flags) == 0,
         fmt::format("{} ({}): flags: expected those that there are, got {:#x}", what, b.name,
                     b.flags));
    if ((b.flags & CATENA_BACKEND_ASYNC) == 0) return;
    const std::pair<const char*, bool> streams[] = {
        {"stream_create", b.stream_create}, {"stream_destroy", b.stream_destroy},
        {"stream_sync", b.stream_sync},     {"event_create", b.event_create},
        {"event_destroy", b.event_destroy}, {"event_record", b.event_record},
        {"event_wait", b.event_wait}};
    for (const auto& [name, there] : streams)
        need(there,
             fmt::format("{} ({}), asynchronous: expected {}(), got NULL", what, b.name, name));
}

void extension(const catena_extension& e, const std::string& what) {
    text(e.id, what + ".id");
    text(e.device, what + ".device");
    need(e.table != nullptr, what + ": expected a table, got NULL");
}

}  // namespace

std::string damage(const catena_manifest& manifest, const catena_plugin& t) {
    const Headers headers = {manifest.abi_minor_built <= CATENA_ABI_MINOR};
    try {
        size(t, "the table", headers);
        each(
            t.functions, t.n_functions, "function", headers,
            [&](const catena_function& f, const std::string& what) { function(f, what, headers); });
        each(t.kernels, t.n_kernels, "kernel", headers,
             [&](const catena_kernel& k, const std::string& what) { kernel(t, k, what); });
        each(t.backends, t.n_backends, "backend", headers, backend);
        each(t.extensions, t.n_extensions, "extension", headers, extension);
    } catch (const Damage& e) {
        return e.what();
    }
    return {};
}

}  // namespace catena::check
