// Checks a plugin's table before anything of it is registered.
#include "registry/registry_check.hpp"

#include "registry/registry.hpp"

#include <compare>
#include <cstring>
#include <map>
#include <set>

namespace catena {
namespace {

void check_kernel(const catena_kernel& k) {
    check_id(k.function, "a kernel's function");
    check_name(k.device, "a kernel's device");
    if (k.phase != CATENA_PHASE_FORWARD && k.phase != CATENA_PHASE_BACKWARD) {
        refuse("kernel of {}: unknown phase {}", k.function, k.phase);
    }
    if (!k.run) refuse("kernel of {} has no run()", k.function);
    if (k.n_types && !k.types) refuse("kernel of {}: types are NULL", k.function);
    if (k.n_types > most_rows(CATENA_MAX_TYPE_VARS)) {
        refuse("kernel of {}: n_types: expected at most {}, got {}", k.function,
               most_rows(CATENA_MAX_TYPE_VARS), k.n_types);
    }
    if (k.version_min > k.version_max) {
        refuse("kernel of {}: versions {} to {}", k.function, k.version_min, k.version_max);
    }
    if (k.n_saved > most_saved) {
        refuse("kernel of {}: n_saved: expected at most {}, got {}", k.function, most_saved,
               k.n_saved);
    }
    if (k.n_saved && !k.variant)
        refuse("kernel of {} saves tensors but names no variant", k.function);
    if (k.n_saved && k.phase == CATENA_PHASE_FORWARD && !k.plan) {
        refuse("kernel of {} saves tensors but has no plan()", k.function);
    }
}

// Backward gets what forward saved. The host pairs kernels of one plugin, device and variant.
void check_pairs(const catena_plugin& table) {
    struct Variant {
        std::string_view function, device, variant;
        auto operator<=>(const Variant&) const = default;
    };
    std::map<Variant, std::uint32_t> saved;
    for (std::uint32_t i = 0; i < table.n_kernels; ++i) {
        const catena_kernel& k = *table.kernels[i];
        if (!k.variant) continue;
        const auto [other, first] = saved.try_emplace({k.function, k.device, k.variant}, k.n_saved);
        if (other->second == k.n_saved) continue;
        refuse("kernel of {}: n_saved: expected {} as in the other kernels of variant '{}', got {}",
               k.function, other->second, k.variant, k.n_saved);
    }
}

void check_backend(const catena_backend& b) {
    check_name(b.name, "a backend");
    if (!b.count || !b.open || !b.close || !b.supports_isa || !b.alloc || !b.free || !b.copy ||
        !b.sync) {
        refuse("backend {} lacks one of count, open, close, supports_isa, alloc, free, copy, sync",
               b.name);
    }
    if ((b.flags & CATENA_BACKEND_ASYNC) &&
        (!b.stream_create || !b.stream_destroy || !b.stream_sync || !b.event_create ||
         !b.event_destroy || !b.event_record || !b.event_wait)) {
        refuse(
            "backend {} is asynchronous and lacks one of stream_create, stream_destroy, "
            "stream_sync, event_create, event_destroy, event_record, event_wait",
            b.name);
    }
    if (b.dlpack_type < 1 || b.dlpack_type > last_device_type) {
        refuse("backend {}: dlpack_type: expected a DLDeviceType, 1 to {}, got {}", b.name,
               last_device_type, b.dlpack_type);
    }
}

void check_count(std::uint32_t n, const void* list, const char* what) {
    if (n > most_entries) {
        refuse("its table: {}: expected at most {}, got {}", what, most_entries, n);
    }
    if (n && !list) refuse("its table counts entries that are NULL");
}

}  // namespace

void check_kernel_of(const catena_function& f, const catena_kernel& k) {
    if (f.flags & CATENA_FUNCTION_VIEW) refuse("kernel of {}, which is a view", k.function);
    if (retains_beyond(k.retain_x, f.n_inputs, is_variadic(f)) ||
        retains_beyond(k.retain_y, f.n_outputs, false)) {
        refuse("kernel of {} retains ports that are not there: x {:#x}, y {:#x}", k.function,
               k.retain_x, k.retain_y);
    }
    const std::uint32_t rows = most_rows(count_type_vars(f));
    if (k.n_types > rows) {
        refuse("kernel of {}: n_types: expected at most {}, got {}", k.function, rows, k.n_types);
    }
}

void Registry::check(std::string_view id, const catena_plugin& table) {
    check_struct(&table, "plugin table", 0);
    check_count(table.n_functions, table.functions, "n_functions");
    check_count(table.n_kernels, table.kernels, "n_kernels");
    check_count(table.n_backends, table.backends, "n_backends");
    check_count(table.n_extensions, table.extensions, "n_extensions");
    for (const auto& other : plugins_) {
        if (other->id == id) {
            refuse("id {} is already loaded from {}", id, other->file.string());
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
                   found->second->plugin.file.string());
        }
        if (!names.insert(name).second) refuse("function {} is there twice", name);
        if (!(table.functions[i]->flags & CATENA_FUNCTION_ADDITION)) continue;
        if (sums) refuse("function {} claims to be the addition, which is {}", name, sums);
        sums = table.functions[i]->name;
    }
    names.clear();
    // Of this plugin or another; add() checks the kernels of a function that comes later.
    const auto known = [&](const char* name) -> const catena_function* {
        for (std::uint32_t i = 0; i < table.n_functions; ++i) {
            if (std::strcmp(table.functions[i]->name, name) == 0) return table.functions[i];
        }
        const auto found = functions_.find(std::string_view(name));
        return found == functions_.end() ? nullptr : &found->second->descriptor;
    };
    for (std::uint32_t i = 0; i < table.n_functions; ++i) {
        const catena_function& f = *table.functions[i];
        const catena_function* gradient = f.grad_function ? known(f.grad_function) : nullptr;
        if (gradient) check_grad_function(f, *gradient);
    }
    for (std::uint32_t i = 0; i < table.n_kernels; ++i) {
        check_struct(table.kernels[i], "kernel", i);
        check_kernel(*table.kernels[i]);
        if (const catena_function* f = known(table.kernels[i]->function)) {
            check_kernel_of(*f, *table.kernels[i]);
        }
    }
    check_pairs(table);
    for (std::uint32_t i = 0; i < table.n_backends; ++i) {
        check_struct(table.backends[i], "backend", i);
        check_backend(*table.backends[i]);
        if (!names.insert(table.backends[i]->name).second) {
            refuse("backend {} is there twice", table.backends[i]->name);
        }
        for (const auto& other : backends_) {
            if (std::strcmp(other->table->name, table.backends[i]->name) == 0) {
                refuse("backend {} is already there, from {}", other->table->name,
                       other->plugin->file.string());
            }
        }
    }
    for (std::uint32_t i = 0; i < table.n_extensions; ++i) {
        check_struct(table.extensions[i], "extension", i);
        check_name(table.extensions[i]->id, "an extension");
        const char* device = table.extensions[i]->device;
        if (!device || *device) check_name(device, "an extension's device");
        if (!table.extensions[i]->table)
            refuse("extension {} has no table", table.extensions[i]->id);
    }
}

}  // namespace catena
