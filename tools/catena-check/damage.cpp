// Whether a plugin's table can be walked at all.
#include "plugin.hpp"

#include <fmt/format.h>

#include <abi_sizes.hpp>

namespace catena::check {
namespace {

constexpr std::uint32_t most_entries = 100'000;

struct Damage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void need(bool good, const std::string& text) {
    if (!good) throw Damage(text);
}

template <class T, class Body>
void each(const T* const* list, std::uint32_t n, const std::string& what, const Body& body) {
    constexpr std::uint32_t least = size_1_0<T>;
    need(n <= most_entries, fmt::format("{}: expected a count of entries, got {}", what, n));
    need(n == 0 || list != nullptr, fmt::format("{}: expected {} entries, got NULL", what, n));
    for (std::uint32_t i = 0; i < n; ++i) {
        need(list[i] != nullptr, fmt::format("{} {}: expected an entry, got NULL", what, i));
        need(list[i]->struct_size >= least,
             fmt::format("{} {}: struct_size: expected at least {}, got {}", what, i, least,
                         list[i]->struct_size));
        body(*list[i], fmt::format("{} {}", what, i));
    }
}

void text(const char* value, const std::string& what) {
    need(value != nullptr, fmt::format("{}: expected a text, got NULL", what));
}

void function(const catena_function& f, const std::string& what) {
    text(f.name, what + ".name");
    const std::string name = f.name;
    text(f.doc, name + ".doc");
    need(f.infer != nullptr, name + ": expected infer(), got NULL");
    for (const bool in : {true, false})
        each(in ? f.inputs : f.outputs, in ? f.n_inputs : f.n_outputs,
             name + (in ? ".inputs" : ".outputs"),
             [](const catena_port_spec& p, const std::string& port) {
                 text(p.name, port + ".name");
                 text(p.doc, port + ".doc");
                 text(p.type_var, port + ".type_var");
             });
    need(f.n_inputs <= CATENA_MAX_PORTS && f.n_outputs <= CATENA_MAX_PORTS,
         fmt::format("{}: expected at most {} ports, got {} and {}", name, +CATENA_MAX_PORTS,
                     f.n_inputs, f.n_outputs));
    need(f.n_attrs <= CATENA_MAX_ATTRS, fmt::format("{}: expected at most {} attributes, got {}",
                                                    name, +CATENA_MAX_ATTRS, f.n_attrs));
    each(f.attrs, f.n_attrs, name + ".attrs",
         [](const catena_attr_spec& a, const std::string& attr) {
             text(a.name, attr + ".name");
             text(a.doc, attr + ".doc");
             need(a.kind >= CATENA_ATTR_INT && a.kind <= CATENA_ATTR_DTYPE,
                  fmt::format("{}: expected a kind that there is, got {}", attr, a.kind));
             if ((a.flags & CATENA_ATTR_REQUIRED) != 0) return;
             need(a.def.kind == a.kind, fmt::format("{}: expected a default of kind {}, got {}",
                                                    attr, a.kind, a.def.kind));
             const bool list = a.kind == CATENA_ATTR_INTS || a.kind == CATENA_ATTR_FLOATS;
             if (a.kind == CATENA_ATTR_STRING || (list && a.def.n > 0))
                 need(a.def.v.s != nullptr, attr + ": expected a default, got NULL");
         });
}

void kernel(const catena_kernel& k, const std::string& what) {
    text(k.function, what + ".function");
    const std::string name = fmt::format("{} (of {})", what, k.function);
    text(k.device, name + ".device");
    text(k.isa, name + ".isa");
    need(k.run != nullptr, name + ": expected run(), got NULL");
    need(k.phase == CATENA_PHASE_FORWARD || k.phase == CATENA_PHASE_BACKWARD,
         fmt::format("{}: expected a phase that there is, got {}", name, k.phase));
    need(k.n_types <= most_entries && (k.n_types == 0 || k.types != nullptr),
         fmt::format("{}: expected {} rows of types, got NULL", name, k.n_types));
    need(k.n_saved <= 64, fmt::format("{}: n_saved: expected a few, got {}", name, k.n_saved));
    need(k.n_saved == 0 || k.phase == CATENA_PHASE_BACKWARD || k.plan != nullptr,
         name + ": it saves tensors: expected plan(), got NULL");
}

void backend(const catena_backend& b, const std::string& what) {
    text(b.name, what + ".name");
    need(b.count && b.open && b.close && b.supports_isa && b.alloc && b.free && b.copy && b.sync,
         fmt::format("{} ({}): expected count, open, close, supports_isa, alloc, free, copy and "
                     "sync, got NULL among them",
                     what, b.name));
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

std::string damage(const catena_plugin& t) {
    try {
        need(t.struct_size >= size_1_0<catena_plugin>,
             fmt::format("the table: struct_size: expected at least {}, got {}",
                         size_1_0<catena_plugin>, t.struct_size));
        each(t.functions, t.n_functions, "function", function);
        each(t.kernels, t.n_kernels, "kernel", kernel);
        each(t.backends, t.n_backends, "backend", backend);
        each(t.extensions, t.n_extensions, "extension", extension);
    } catch (const Damage& e) {
        return e.what();
    }
    return {};
}

}  // namespace catena::check
