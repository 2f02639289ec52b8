// Checks a plugin's table before anything of it is registered.
#include "abi_sizes.hpp"
#include "registry.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <set>

namespace catena {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
    throw PluginError(fmt::format(text, std::forward<Args>(args)...));
}

// Structs of ABI 1.0 are the least that a plugin may hand over.
template <class T>
void check_struct(const T* item, const char* what, std::uint32_t index) {
    if (!item) refuse("{} {} of its table is NULL", what, index);
    static_assert(size_1_0<T> != 0 && size_1_0<T> <= sizeof(T));
    if (item->struct_size < size_1_0<T>) {
        refuse("{} {}: struct_size: expected at least {}, got {}", what, index, size_1_0<T>,
               item->struct_size);
    }
}

void check_name(const char* name, const char* what) {
    if (!name || !*name) refuse("{} has no name", what);
    if (std::strlen(name) > 200) refuse("{} has a name of over 200 bytes", what);
    for (const char* c = name; *c; ++c) {
        if (!(std::isalnum(static_cast<unsigned char>(*c)) || std::strchr("._-:/", *c))) {
            refuse("{} '{}': names are letters, digits and . _ - : /", what, name);
        }
    }
}

void check_ports(const catena_function& f, const catena_port_spec* const* ports, std::uint32_t n,
                 bool inputs) {
    if (n > CATENA_MAX_PORTS) refuse("function {}: more than {} ports", f.name, +CATENA_MAX_PORTS);
    if (n && !ports) refuse("function {}: ports are NULL", f.name);
    for (std::uint32_t i = 0; i < n; ++i) {
        check_struct(ports[i], inputs ? "input" : "output", i);
        check_name(ports[i]->name, fmt::format("port {} of {}", i, f.name).c_str());
        if (!ports[i]->type_var)
            refuse("function {}: port {} has no type_var", f.name, ports[i]->name);
        if ((ports[i]->flags & CATENA_PORT_VARIADIC) && (!inputs || i + 1 != n)) {
            refuse("function {}: only the last input can be variadic, not {}", f.name,
                   ports[i]->name);
        }
    }
}

void check_function(const catena_function& f) {
    check_name(f.name, "a function");
    if (!f.infer) refuse("function {} has no infer()", f.name);
    if (f.version < 1) refuse("function {}: version: expected at least 1, got 0", f.name);
    check_ports(f, f.inputs, f.n_inputs, true);
    check_ports(f, f.outputs, f.n_outputs, false);
    if (f.gradient && f.grad_function) {
        refuse("function {} has both gradient() and grad_function", f.name);
    }
    if (f.n_attrs > CATENA_MAX_ATTRS) refuse("function {}: too many attributes", f.name);
    if (f.n_attrs && !f.attrs) refuse("function {}: attributes are NULL", f.name);
    std::set<std::string_view> names;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        check_struct(f.attrs[i], "attribute", i);
        const catena_attr_spec& attr = *f.attrs[i];
        check_name(attr.name, fmt::format("attribute {} of {}", i, f.name).c_str());
        if (!names.insert(attr.name).second) {
            refuse("function {}: attribute {} is there twice", f.name, attr.name);
        }
        if (attr.kind < CATENA_ATTR_INT || attr.kind > CATENA_ATTR_DTYPE) {
            refuse("function {}: attribute {}: unknown kind {}", f.name, attr.name, attr.kind);
        }
        if (attr.flags & CATENA_ATTR_REQUIRED) continue;
        if (attr.def.kind != attr.kind) {
            refuse("function {}: attribute {}: default of kind {}, expected {}", f.name, attr.name,
                   attr.def.kind, attr.kind);
        }
        const bool list = attr.kind == CATENA_ATTR_INTS || attr.kind == CATENA_ATTR_FLOATS;
        if ((attr.kind == CATENA_ATTR_STRING || (list && attr.def.n)) && !attr.def.v.s) {
            refuse("function {}: attribute {}: its default is NULL", f.name, attr.name);
        }
    }
    std::set<std::string_view> types;
    for (std::uint32_t i = 0; i < f.n_inputs; ++i) types.insert(f.inputs[i]->type_var);
    for (std::uint32_t i = 0; i < f.n_outputs; ++i) types.insert(f.outputs[i]->type_var);
    if (types.size() > CATENA_MAX_TYPE_VARS) {
        refuse("function {}: more than {} type variables", f.name, +CATENA_MAX_TYPE_VARS);
    }
}

void check_kernel(const catena_kernel& k) {
    check_name(k.function, "a kernel's function");
    check_name(k.device, "a kernel's device");
    if (k.phase != CATENA_PHASE_FORWARD && k.phase != CATENA_PHASE_BACKWARD) {
        refuse("kernel of {}: unknown phase {}", k.function, k.phase);
    }
    if (!k.run) refuse("kernel of {} has no run()", k.function);
    if (k.n_types && !k.types) refuse("kernel of {}: types are NULL", k.function);
    if (k.version_min > k.version_max) {
        refuse("kernel of {}: versions {} to {}", k.function, k.version_min, k.version_max);
    }
    if (k.n_saved && !k.variant)
        refuse("kernel of {} saves tensors but names no variant", k.function);
    if (k.n_saved && k.phase == CATENA_PHASE_FORWARD && !k.plan) {
        refuse("kernel of {} saves tensors but has no plan()", k.function);
    }
}

void check_backend(const catena_backend& b) {
    check_name(b.name, "a backend");
    if (!b.count || !b.open || !b.close || !b.supports_isa || !b.alloc || !b.free || !b.copy ||
        !b.sync) {
        refuse("backend {} lacks one of count, open, close, supports_isa, alloc, free, copy, sync",
               b.name);
    }
}

}  // namespace

void Registry::check(const LoadedPlugin& info, const catena_plugin& table) {
    check_struct(&table, "plugin table", 0);
    if ((table.n_functions && !table.functions) || (table.n_kernels && !table.kernels) ||
        (table.n_backends && !table.backends) || (table.n_extensions && !table.extensions)) {
        refuse("its table counts entries that are NULL");
    }
    for (const auto& other : plugins_) {
        if (other->info.id == info.id) {
            refuse("id {} is already loaded from {}", info.id, other->info.path.string());
        }
    }
    std::set<std::string_view> names;
    const char* sums = addition() ? addition()->descriptor.name : nullptr;
    for (std::uint32_t i = 0; i < table.n_functions; ++i) {
        check_struct(table.functions[i], "function", i);
        check_function(*table.functions[i]);
        const std::string_view name = table.functions[i]->name;
        if (const auto found = functions_.find(name); found != functions_.end()) {
            refuse("function {} is already there, from {}", name,
                   found->second->plugin.info.path.string());
        }
        if (!names.insert(name).second) refuse("function {} is there twice", name);
        if (!(table.functions[i]->flags & CATENA_FUNCTION_ADDITION)) continue;
        if (sums) refuse("function {} claims to be the addition, which is {}", name, sums);
        sums = table.functions[i]->name;
    }
    names.clear();
    for (std::uint32_t i = 0; i < table.n_kernels; ++i) {
        check_struct(table.kernels[i], "kernel", i);
        check_kernel(*table.kernels[i]);
    }
    for (std::uint32_t i = 0; i < table.n_backends; ++i) {
        check_struct(table.backends[i], "backend", i);
        check_backend(*table.backends[i]);
        if (!names.insert(table.backends[i]->name).second) {
            refuse("backend {} is there twice", table.backends[i]->name);
        }
        for (const auto& other : backends_) {
            if (std::strcmp(other->table->name, table.backends[i]->name) == 0) {
                refuse("backend {} is already there, from {}", other->table->name,
                       other->plugin->info.path.string());
            }
        }
    }
    for (std::uint32_t i = 0; i < table.n_extensions; ++i) {
        check_struct(table.extensions[i], "extension", i);
        check_name(table.extensions[i]->id, "an extension");
        check_name(table.extensions[i]->device, "an extension's device");
        if (!table.extensions[i]->table)
            refuse("extension {} has no table", table.extensions[i]->id);
    }
}

}  // namespace catena
