// jit.catena, table of contents: kernels from formulas that are written down at run time.
#include <algorithm>
#include <map>
#include <memory>
#include <shared_mutex>

#include "catena/abi/ext/compiled.h"
#include "kernel.hpp"

namespace catena_jit {
namespace {

using catena::plugin::extension, catena::plugin::guarded;

// All that makes two formulas the same.
std::string identity_of(const catena_formula& f) {
    std::string text = {static_cast<char>('0' + f.kind), keeps_source(f) ? 'k' : '-'};
    const auto add = [&](const char* part) {
        text += part != nullptr ? '+' : '-';
        if (part != nullptr) text += part;
        text += '\0';
    };
    for (const char* part : {f.name, f.inputs, f.outputs, f.operation, f.preamble, f.loop_prep,
                             f.after_loop, f.reduce, f.finish, f.identity, f.reduce_type})
        add(part);
    for (const char* const* o = f.options; o != nullptr && *o != nullptr; ++o) add(*o);
    return text;
}

catena_status create(catena_ctx* ctx, const catena_formula* source,
                     const catena_formula_kernel** kernel) {
    return guarded(ctx, [&] {
        static auto* kernels = new std::map<std::string, std::unique_ptr<catena_formula_kernel>>;
        static std::shared_mutex mutex;
        std::string identity = identity_of(*source);
        {
            const std::shared_lock lock(mutex);
            const auto found = kernels->find(identity);
            *kernel = found != kernels->end() ? found->second.get() : nullptr;
        }
        if (*kernel != nullptr) return;
        auto made = std::make_unique<catena_formula_kernel>(*source);
        const std::lock_guard lock(mutex);
        *kernel = kernels->try_emplace(std::move(identity), std::move(made)).first->second.get();
    });
}

void arity(const catena_formula_kernel* kernel, uint32_t* n_x, uint32_t* n_y) {
    *n_x = static_cast<uint32_t>(kernel->formula.n_x);
    *n_y = static_cast<uint32_t>(kernel->formula.n_y);
}

catena_status infer(catena_ctx* ctx, const catena_formula_kernel* kernel,
                    const catena_formula_call* call, catena_meta* const* y,
                    uint64_t* scratch_bytes) {
    return guarded(ctx, [&] {
        const Formula& f = kernel->formula;
        const Binding b(f, *call);
        for (std::size_t k = 0; k < f.n_y; ++k) {
            if (call->y != nullptr && call->y[k] != nullptr) continue;
            y[k]->dtype = type_at(b.key.type[f.n_x + k]).dtype;
            y[k]->ndim = b.output.ndim;
            std::copy_n(b.output.at, b.output.ndim, y[k]->shape);
        }
        *scratch_bytes = 0;
        if (!f.is_reduction()) return;
        for (const catena_compiler* const* c = compilers(ctx); *c != nullptr; ++c) {
            const Cut cut = make_cut(b, **c);  // any of them may turn out to be the one
            if (cut.pieces > 1)
                *scratch_bytes = std::max(
                    *scratch_bytes, static_cast<uint64_t>(cut.pieces * b.outputs) * partial_bytes);
        }
    });
}

catena_status run_call(catena_ctx* ctx, const catena_formula_kernel* kernel,
                       const catena_formula_call* call) {
    return guarded(ctx, [&] {
        const Binding b(kernel->formula, *call);
        for (uint32_t k = 0; k < kernel->formula.n_y; ++k)
            if (call->y == nullptr || call->y[k] == nullptr)
                b.refuse(CATENA_E_INVALID, "outputs", "an array for each", "none");
        run(ctx, *kernel, b);
    });
}

void stats(catena_kernels_stats* s) {
    s->compiled = counts.compiled.load(std::memory_order_relaxed);
    s->loaded = counts.loaded.load(std::memory_order_relaxed);
    s->hits = counts.hits.load(std::memory_order_relaxed);
    s->evicted = binary_cache().evicted();
}

const catena_kernels table = {
    .struct_size = sizeof(catena_kernels),
    .reserved = 0,
    .create = create,
    .arity = arity,
    .writes = [](const catena_formula_kernel* kernel, uint32_t i) -> int32_t {
        return kernel->formula.at(i).writes ? 1 : 0;
    },
    .infer = infer,
    .run = run_call,
    .stats = stats,
};

const catena_compiled_kernels compiled_table = {
    .struct_size = sizeof(catena_compiled_kernels),
    .reserved = 0,
    .use = [](catena_ctx* ctx, const char* folder) -> catena_status {
        return guarded(ctx, [&] { shipped().use(folder); });
    },
};

constexpr catena_extension kernels =
    extension(CATENA_KERNELS_1, "", &table, CATENA_PRIORITY_PORTABLE);
constexpr catena_extension compiled =
    extension(CATENA_COMPILED_KERNELS_1, "", &compiled_table, CATENA_PRIORITY_PORTABLE);
const catena_extension* const extensions[] = {&kernels, &compiled};

constexpr catena_plugin plugin =
    catena::plugin::table_of({.kernels = {}, .backends = {}, .extensions = extensions});

}  // namespace
}  // namespace catena_jit

CATENA_EXPORT_PLUGIN("org.catena.kernels", "0.1.0", "", catena_jit::plugin);
