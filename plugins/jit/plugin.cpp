// The plugin table of jit.catena: kernels from formulas that are compiled at run time, and the two caches
// around the compilers: binaries on disk, loaded kernels in memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include <catena/plugin/tables.hpp>

#include "binaries.hpp"
#include "binding.hpp"
#include "catena/abi/ext/compiled.h"
#include "catena/abi/ext/compiler.h"

// A loaded kernel. Variants form a linked list that grows only at its head, so calls read it without a lock.
struct catena_variant {
    catena_jit::Key key;
    const catena_compiler* compiler = nullptr;
    const catena_compiled* compiled = nullptr;
    const catena_variant* next = nullptr;
};

// A formula and the kernels compiled for it so far.
struct catena_formula_kernel {
    explicit catena_formula_kernel(const catena_formula& source) : formula(source) {}

    catena_jit::Formula formula;
    mutable std::atomic<const catena_variant*> variants = nullptr;
    mutable std::mutex compiling;
};

namespace catena_jit {
namespace {

using catena::plugin::extension, catena::plugin::guarded, catena::plugin::host;

// Statistics since the start of the process.
struct Counts {
    std::atomic<uint64_t> compiled = 0, loaded = 0, hits = 0;
};
constinit Counts counts;

// The maximum size of a partial result; dialects assert it.
constexpr uint64_t partial_bytes = 64;

BinaryCache& binary_cache() {
    static auto* cache = new BinaryCache;
    return *cache;
}

Shipped& shipped() {
    static auto* all = new Shipped;
    return *all;
}

// Returns the device's compilers, best first, NULL-terminated.
const catena_compiler* const* compilers(catena_ctx* ctx) {
    return reinterpret_cast<const catena_compiler* const*>(
        host().extensions(ctx, CATENA_COMPILER_1));
}

// Throws if a compiler's function failed; the compiler has already set the message.
void check(catena_status status) {
    if (status != CATENA_OK) throw Error(status);
}

void log(catena_ctx* ctx, int level, const Binding& b, const std::string& text) {
    host().log(ctx, level, ("[" + b.formula.name + "] " + text).c_str());
}

// Returns the compiler's identity. It is cached, because the compiler may run a program to determine it.
const std::string& identity_of(catena_ctx* ctx, const catena_compiler& compiler, void* dev) {
    static std::mutex mutex;
    static auto* all = new std::map<std::pair<const catena_compiler*, void*>, std::string>;
    const std::lock_guard guard(mutex);
    std::string& identity = (*all)[{&compiler, dev}];
    if (identity.empty()) {
        char text[CATENA_COMPILER_IDENTITY] = {};
        check(compiler.identity(ctx, dev, text));
        identity = text;
    }
    return identity;
}

// Returns a cache key. made_by: the compiler's identity, or its replacement for shipped binaries.
std::string key_of(const Formula& f, const std::string& made_by, const std::string& source) {
    std::string all;
    const auto add = [&](const std::string& text) {
        const uint64_t size = text.size();
        all.append(reinterpret_cast<const char*>(&size), sizeof size) += text;
    };
    add("catena kernel 1");
    add(f.name);
    add(made_by);
    for (const std::string& option : f.options) add(option);
    add(source);
    return sha256(all);
}

// Compiles the source and returns the binary.
std::string compile(catena_ctx* ctx, const Binding& b, const catena_compiler& compiler,
                    const std::string& source) {
    struct {
        std::string binary, messages;
    } result;
    using Result = decltype(result);
    std::vector<const char*> options;
    for (const std::string& option : b.formula.options) options.push_back(option.c_str());
    options.push_back(nullptr);
    const std::string entry = b.formula.entry();
    catena_compilation c = {};
    c.struct_size = sizeof c;
    c.name = entry.c_str();
    c.source = source.c_str();
    c.options = options.data();
    c.binary = [](void* user, const void* data, uint64_t bytes) {
        static_cast<Result*>(user)->binary.assign(static_cast<const char*>(data), bytes);
    };
    c.messages = [](void* user, const char* text) { static_cast<Result*>(user)->messages = text; };
    c.user = &result;
    const auto start = std::chrono::steady_clock::now();
    const catena_status status = compiler.compile(ctx, b.call.dev, &c);
    if (status != CATENA_OK && !result.messages.empty())
        throw Error(status, explain(b, compiler.name, result.messages));
    check(status);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    counts.compiled.fetch_add(1, std::memory_order_relaxed);
    log(ctx, CATENA_LOG_DEBUG, b,
        "compiled in " + std::to_string(static_cast<int>(time.count())) + " ms: " + b.types_text());
    return std::move(result.binary);
}

catena_status load(catena_ctx* ctx, const Binding& b, const catena_compiler& compiler,
                   const Binary& binary, const catena_compiled** compiled) {
    const std::string path = "/proc/self/fd/" + std::to_string(binary.file.get());
    const std::string entry = b.formula.entry();
    catena_binary loaded = {};
    loaded.struct_size = sizeof loaded;
    loaded.name = entry.c_str();
    loaded.data = binary.bytes.data();
    loaded.bytes = binary.bytes.size();
    loaded.path = binary.file ? path.c_str() : nullptr;
    return compiler.load(ctx, b.call.dev, &loaded, compiled);
}

// Whether code includes files other than by <NAME>, where NAME is relative and contains no "..".
bool includes_files(const std::string& code) {
    for (std::size_t at = 0; (at = code.find('#', at)) != std::string::npos; ++at) {
        const std::size_t word = code.find_first_not_of(" \t", at + 1);
        if (word == std::string::npos || code.compare(word, 7, "include") != 0) continue;
        const std::string what = code.substr(word + 7, code.find('\n', word) - word - 7);
        const std::size_t begin = what.find_first_not_of(" \t");
        if (begin == std::string::npos || what[begin] != '<' || what[begin + 1] == '/' ||
            what.find("..") != std::string::npos)
            return true;
    }
    return false;
}

// Whether the formula reads files that may change: their contents are not part of the key.
bool reads_files(const Formula& f) {
    for (const std::string& option : f.options)
        if (option.find('/') != std::string::npos || option.starts_with("@") ||
            option.starts_with("-I") || option.starts_with("-i") || option.starts_with("--include"))
            return true;
    for (const Code* code : {&f.preamble, &f.operation, &f.loop_prep, &f.after_loop, &f.reduce,
                             &f.finish, &f.identity})
        if (includes_files(code->text)) return true;
    return false;
}

void log_found(catena_ctx* ctx, const Binding& b) {
    counts.loaded.fetch_add(1, std::memory_order_relaxed);
    log(ctx, CATENA_LOG_DEBUG, b, "found compiled: " + b.types_text());
}

const catena_targets* targets_of(catena_ctx* ctx) {
    return static_cast<const catena_targets*>(*host().extensions(ctx, CATENA_TARGETS_1));
}

// Loads a kernel that was shipped with the program. Returns NULL if there is none or it does not load.
const catena_compiled* load_shipped(catena_ctx* ctx, const Binding& b,
                                    const catena_compiler& compiler, const std::string& key) {
    const catena_targets* targets = targets_of(ctx);
    if (targets == nullptr) return nullptr;
    const std::optional<Binary> binary =
        shipped().find(b.formula.name, key, targets->runs(b.call.dev));
    if (!binary) return nullptr;
    const catena_compiled* compiled = nullptr;
    if (load(ctx, b, compiler, *binary, &compiled) == CATENA_OK) log_found(ctx, b);
    else log(ctx, CATENA_LOG_WARNING, b, "the kernel that was shipped does not load here");
    return compiled;
}

void keep_source(catena_ctx* ctx, const Binding& b, const std::string& key,
                 const std::string& source) {
    const std::string path = binary_cache().keep_source(b.formula.name, key, source);
    if (!path.empty()) return log(ctx, CATENA_LOG_INFO, b, "the source is in " + path);
    warn("source of " + b.formula.name +
         ": expected a folder of compiled kernels to keep it in, see CATENA_KERNEL_CACHE, got none "
         "that can be written to");
}

// Loads or compiles the kernel with this compiler. The caller holds the formula's mutex `compiling`.
const catena_compiled* make(catena_ctx* ctx, const Binding& b, const catena_compiler& compiler) {
    const std::string& name = b.formula.name;
    const std::string source = make_source(b, compiler.dialect);
    const bool keeps = !reads_files(b.formula);
    const bool exports = keeps && shipped().exports();
    // Does not depend on the machine or on the version of the compiler.
    const std::string shipped_key =
        key_of(b.formula, std::string("shipped ") + compiler.name, source);
    const catena_compiled* compiled = nullptr;
    if (keeps && !exports) compiled = load_shipped(ctx, b, compiler, shipped_key);
    if (compiled != nullptr) return compiled;
    const std::string key = key_of(b.formula, identity_of(ctx, compiler, b.call.dev), source);
    BinaryCache& cache = binary_cache();
    if (b.formula.keep_source) keep_source(ctx, b, key, source);
    std::optional<Binary> binary;
    if (keeps) binary = cache.find(name, key);
    Descriptor lock;
    if (keeps && !binary) {
        lock = cache.lock(key);
        binary = cache.find(name, key);  // another process may have stored it meanwhile
    }
    if (binary) {
        log_found(ctx, b);
    } else {
        std::string bytes = compile(ctx, b, compiler, source);
        binary = keeps ? cache.store(name, key, std::move(bytes)) : Binary{std::move(bytes), {}};
    }
    if (const catena_targets* targets = exports ? targets_of(ctx) : nullptr)
        shipped().put(name, shipped_key, targets->makes(b.call.dev), binary->bytes);
    check(load(ctx, b, compiler, *binary, &compiled));
    return compiled;
}

const catena_variant* find(const catena_formula_kernel& kernel, const Key& key) {
    const catena_variant* v = kernel.variants.load(std::memory_order_acquire);
    while (v != nullptr && !(v->key == key)) v = v->next;
    return v;
}

const catena_variant* make_variant(catena_ctx* ctx, const catena_formula_kernel& kernel,
                                   const Binding& b) {
    const std::lock_guard guard(kernel.compiling);
    if (const catena_variant* variant = find(kernel, b.key)) return variant;
    const catena_compiler* const* tables = compilers(ctx);
    if (*tables == nullptr)
        b.refuse(CATENA_E_UNSUPPORTED, "device", "one that has a compiler for kernels at run time",
                 "one without");
    auto made = std::make_unique<catena_variant>();
    while (made->compiled == nullptr) {
        made->compiler = *tables++;
        try {
            made->compiled = make(ctx, b, *made->compiler);
        } catch (const Error& error) {  // the next compiler may support it
            if (error.status() != CATENA_E_UNSUPPORTED || *tables == nullptr) throw;
        }
    }
    made->key = b.key;
    made->next = kernel.variants.load(std::memory_order_relaxed);
    kernel.variants.store(made.get(), std::memory_order_release);
    return made.release();
}

void launch(catena_ctx* ctx, const Binding& b, const catena_variant& variant, const Cut& cut) {
    alignas(8) unsigned char args[max_args_bytes];
    catena_launch launch = {};
    launch.struct_size = sizeof launch;
    launch.kernel = variant.compiled;
    launch.kind = CATENA_LAUNCH_ELEMENTS;
    launch.n = b.size;
    launch.cost = launch.unit = 1;
    if (b.formula.is_reduction()) {
        const bool joins = cut.phase == 2;
        const bool across = b.key.along == 0;
        launch.kind = across ? CATENA_LAUNCH_COLUMNS : CATENA_LAUNCH_ROWS;
        launch.n = joins ? b.outputs : b.outputs * cut.pieces;
        launch.cost = joins ? cut.pieces : cut.length;
        if (across && !joins) launch.unit = std::min<int64_t>(b.dims.extent[b.dims.n - 1], 128);
    }
    launch.args_bytes = pack_arguments(b, cut, args);
    launch.args = args;
    launch.dev = b.call.dev;
    launch.stream = b.call.stream;
    check(variant.compiler->launch(ctx, &launch));
}

// Returns how a reduction is split for this compiler; it does not depend on the number of threads.
Cut make_cut(const Binding& b, const catena_compiler& compiler) {
    Cut cut;
    cut.length = b.reduced;
    if (b.outputs == 0 || b.outputs >= compiler.reduction_pieces) return cut;
    const int64_t wanted = (compiler.reduction_pieces + b.outputs - 1) / b.outputs;
    const int64_t pieces = std::min(wanted, b.reduced / compiler.reduction_least);
    if (pieces < 2) return cut;
    cut.length = (b.reduced + pieces - 1) / pieces;
    cut.pieces = (b.reduced + cut.length - 1) / cut.length;
    return cut;
}

// Returns a text that is equal for equal formulas.
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
            const Cut cut = make_cut(b, **c);  // any of the compilers may be used
            if (cut.pieces > 1)
                *scratch_bytes = std::max(
                    *scratch_bytes, static_cast<uint64_t>(cut.pieces * b.outputs) * partial_bytes);
        }
    });
}

// Finds, loads or compiles the kernel, and launches it.
catena_status run(catena_ctx* ctx, const catena_formula_kernel* kernel,
                  const catena_formula_call* call) {
    return guarded(ctx, [&] {
        const Binding b(kernel->formula, *call);
        for (uint32_t k = 0; k < kernel->formula.n_y; ++k)
            if (call->y == nullptr || call->y[k] == nullptr)
                b.refuse(CATENA_E_INVALID, "outputs", "an array for each", "none");
        if (b.outputs == 0) return;
        const catena_variant* variant = find(*kernel, b.key);
        if (variant != nullptr) counts.hits.fetch_add(1, std::memory_order_relaxed);
        else variant = make_variant(ctx, *kernel, b);
        if (!b.formula.is_reduction()) return launch(ctx, b, *variant, {});
        Cut cut = make_cut(b, *variant->compiler);
        if (cut.pieces == 1) return launch(ctx, b, *variant, cut);
        const auto needed = static_cast<uint64_t>(cut.pieces * b.outputs) * partial_bytes;
        if (b.call.scratch == nullptr || b.call.scratch_bytes < needed)
            b.refuse(CATENA_E_INVALID, "scratch",
                     std::to_string(needed) + " bytes, as infer() says", b.call.scratch_bytes);
        cut.partial = b.call.scratch;
        for (cut.phase = 1; cut.phase <= 2; ++cut.phase) launch(ctx, b, *variant, cut);
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
    .run = run,
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

constexpr catena_plugin plugin = catena::plugin::table_of({.extensions = extensions});

}  // namespace
}  // namespace catena_jit

CATENA_EXPORT_PLUGIN("org.catena.kernels", CATENA_VERSION, "", catena_jit::plugin);
