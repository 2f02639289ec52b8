// The two caches around the compilers: binaries on disk, loaded kernels in memory.
#include "kernel.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "catena/abi/ext/draft/compiled.h"
#include "sha256.hpp"

// A kernel in memory. They are a list that only grows, at its head: a call reads it without a lock.
struct catena_variant {
    catena_jit::Key key;
    const catena_compiler* compiler;
    const catena_compiled* compiled;
    const catena_variant* next;
};

namespace catena_jit {
namespace {

struct Compilation {
    std::vector<unsigned char> binary;
    std::string messages;
};

// The identity asks a program and lasts: one for each compiler and device.
struct Identities {
    struct Known {
        const catena_compiler* compiler;
        const void* dev;
        std::string text;
    };
    std::mutex mutex;
    std::vector<Known> known;
};

// Throws nothing: the failure's text is the host's already.
catena_status identity_of(catena_ctx* ctx, const catena_compiler& compiler, void* dev,
                          std::string& identity) {
    static auto* all = new Identities;
    const std::lock_guard guard(all->mutex);
    for (const Identities::Known& known : all->known) {
        if (known.compiler != &compiler || known.dev != dev) continue;
        identity = known.text;
        return CATENA_OK;
    }
    char text[CATENA_COMPILER_IDENTITY] = {};
    const catena_status status = compiler.identity(ctx, dev, text);
    if (status != CATENA_OK) return status;
    identity = text;
    all->known.push_back({&compiler, dev, identity});
    return CATENA_OK;
}

// made_by: the compiler's identity, or what a shipped binary has in its place.
std::string key_of(const Formula& f, const std::string& made_by, const std::string& source) {
    Sha256 hash;
    const auto add = [&](const std::string& text) {
        const uint64_t size = text.size();
        hash.add(&size, sizeof size);
        hash.add(text);
    };
    add("catena kernel 1");
    add(f.name);
    add(made_by);
    for (const std::string& option : f.options) add(option);
    add(source);
    return hash.hex();
}

catena_status compile(catena_ctx* ctx, const Binding& b, const catena_compiler& compiler,
                      const std::string& source, std::vector<unsigned char>& binary) {
    std::vector<const char*> options;
    for (const std::string& option : b.formula.options) options.push_back(option.c_str());
    options.push_back(nullptr);
    Compilation result;
    const std::string entry = b.formula.entry();
    catena_compilation c = {};
    c.struct_size = sizeof c;
    c.name = entry.c_str();
    c.source = source.c_str();
    c.options = options.data();
    c.binary = [](void* user, const void* data, uint64_t bytes) {
        const auto* begin = static_cast<const unsigned char*>(data);
        static_cast<Compilation*>(user)->binary.assign(begin, begin + bytes);
    };
    c.messages = [](void* user, const char* text) {
        static_cast<Compilation*>(user)->messages = text;
    };
    c.user = &result;
    const auto start = std::chrono::steady_clock::now();
    const catena_status status = compiler.compile(ctx, b.call.dev, &c);
    if (status != CATENA_OK && !result.messages.empty())
        throw Failure{status, explain(b, compiler.name, result.messages)};
    if (status != CATENA_OK) return status;
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    counts().compiled.fetch_add(1, std::memory_order_relaxed);
    host->log(ctx, CATENA_LOG_DEBUG,
              ("[" + b.formula.name + "] compiled in " +
               std::to_string(static_cast<int>(time.count())) + " ms: " + b.types_text())
                  .c_str());
    binary = std::move(result.binary);
    return CATENA_OK;
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

// Whether code includes what is not a header of the compiler's by its plain name.
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

// Files that the author may change: their text is not in the key.
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
    counts().loaded.fetch_add(1, std::memory_order_relaxed);
    host->log(ctx, CATENA_LOG_DEBUG,
              ("[" + b.formula.name + "] found compiled: " + b.types_text()).c_str());
}

const catena_targets* targets_of(catena_ctx* ctx) {
    return static_cast<const catena_targets*>(*host->extensions(ctx, CATENA_TARGETS_DRAFT_1));
}

// The same wherever it is compiled, and by what.
std::string shipped_key(const Binding& b, const catena_compiler& compiler,
                        const std::string& source) {
    return key_of(b.formula, std::string("shipped ") + compiler.name, source);
}

// One that came with the program. False if there is none, or the device does not take it.
bool load_shipped(catena_ctx* ctx, const Binding& b, const catena_compiler& compiler,
                  const std::string& source, const catena_compiled** compiled) {
    const catena_targets* targets = targets_of(ctx);
    if (targets == nullptr || shipped().empty()) return false;
    const std::optional<Binary> binary =
        shipped().find(b.formula.name, shipped_key(b, compiler, source), targets->runs(b.call.dev));
    if (!binary) return false;
    if (load(ctx, b, compiler, *binary, compiled) == CATENA_OK) {
        log_found(ctx, b);
        return true;
    }
    host->log(ctx, CATENA_LOG_WARNING,
              ("[" + b.formula.name + "] the kernel that was shipped does not load here").c_str());
    return false;
}

// With one compiler of the device. kernel.compiling is held.
catena_status make(catena_ctx* ctx, const Binding& b, const catena_compiler& compiler,
                   const catena_compiled** compiled) {
    const std::string source = make_source(b, compiler.dialect);
    const bool keeps = !reads_files(b.formula);
    const bool exports = keeps && shipped().exports();
    if (keeps && !exports && load_shipped(ctx, b, compiler, source, compiled)) return CATENA_OK;
    std::string identity;
    if (const catena_status status = identity_of(ctx, compiler, b.call.dev, identity);
        status != CATENA_OK)
        return status;
    const std::string key = key_of(b.formula, identity, source);
    BinaryCache& cache = binary_cache();
    if (b.formula.keep_source) {
        const std::string path = cache.keep_source(b.formula.name, key, source);
        if (path.empty())
            host->log(ctx, CATENA_LOG_WARNING,
                      ("[kernels] source of " + b.formula.name +
                       ": expected a folder of compiled kernels to keep it in, see "
                       "CATENA_KERNEL_CACHE, got none that can be written to")
                          .c_str());
        else
            host->log(ctx, CATENA_LOG_INFO,
                      ("[" + b.formula.name + "] the source is in " + path).c_str());
    }
    std::optional<Binary> binary;
    if (keeps) binary = cache.find(b.formula.name, key);
    Descriptor lock;
    if (keeps && !binary) {
        lock = cache.lock(key);
        binary = cache.find(b.formula.name, key);  // made while this process waited
    }
    if (binary) {
        log_found(ctx, b);
    } else {
        std::vector<unsigned char> bytes;
        if (const catena_status status = compile(ctx, b, compiler, source, bytes);
            status != CATENA_OK)
            return status;
        binary = keeps ? cache.store(b.formula.name, key, std::move(bytes))
                       : Binary{std::move(bytes), {}};
    }
    if (const catena_targets* targets = exports ? targets_of(ctx) : nullptr)
        shipped().put(b.formula.name, shipped_key(b, compiler, source), targets->makes(b.call.dev),
                      binary->bytes);
    return load(ctx, b, compiler, *binary, compiled);
}

const catena_variant* find(const catena_formula_kernel& kernel, const Key& key) {
    const catena_variant* v = kernel.variants.load(std::memory_order_acquire);
    while (v != nullptr && !(v->key == key)) v = v->next;
    return v;
}

catena_status make_variant(catena_ctx* ctx, const catena_formula_kernel& kernel, const Binding& b,
                           const catena_variant*& variant) {
    const std::lock_guard guard(kernel.compiling);
    variant = find(kernel, b.key);
    if (variant != nullptr) return CATENA_OK;
    const catena_compiler* const* tables = compilers(ctx);
    if (*tables == nullptr)
        throw Failure{CATENA_E_UNSUPPORTED, "[" + b.formula.name +
                                                "] device: expected one that has a compiler for "
                                                "kernels at run time, got one without"};
    auto made = std::make_unique<catena_variant>();
    catena_status status = CATENA_E_UNSUPPORTED;
    for (; *tables != nullptr && status == CATENA_E_UNSUPPORTED; ++tables) {
        made->compiler = *tables;
        status = make(ctx, b, **tables, &made->compiled);
    }
    if (status != CATENA_OK) return status;
    made->key = b.key;
    made->next = kernel.variants.load(std::memory_order_relaxed);
    variant = made.release();
    kernel.variants.store(variant, std::memory_order_release);
    return CATENA_OK;
}

catena_status launch(catena_ctx* ctx, const Binding& b, const catena_variant& variant,
                     const Cut& cut) {
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
    return variant.compiler->launch(ctx, &launch);
}

}  // namespace

Counts& counts() {
    static Counts all;
    return all;
}

BinaryCache& binary_cache() {
    static auto* cache = new BinaryCache(*host);
    return *cache;
}

Shipped& shipped() {
    static auto* all = new Shipped(*host);
    return *all;
}

const catena_compiler* const* compilers(catena_ctx* ctx) {
    return reinterpret_cast<const catena_compiler* const*>(
        host->extensions(ctx, CATENA_COMPILER_DRAFT_1));
}

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

catena_status run(catena_ctx* ctx, const catena_formula_kernel& kernel, const Binding& b) {
    if (b.outputs == 0) return CATENA_OK;
    const catena_variant* variant = find(kernel, b.key);
    if (variant != nullptr) {
        counts().hits.fetch_add(1, std::memory_order_relaxed);
    } else {
        const catena_status status = make_variant(ctx, kernel, b, variant);
        if (status != CATENA_OK) return status;
    }
    if (!b.formula.is_reduction()) return launch(ctx, b, *variant, {});
    Cut cut = make_cut(b, *variant->compiler);
    if (cut.pieces == 1) return launch(ctx, b, *variant, cut);
    const auto needed = static_cast<uint64_t>(cut.pieces * b.outputs) * partial_bytes;
    if (b.call.scratch == nullptr || b.call.scratch_bytes < needed)
        throw Failure{CATENA_E_INVALID,
                      "[" + kernel.formula.name + "] scratch: expected " + std::to_string(needed) +
                          " bytes, as infer() says, got " + std::to_string(b.call.scratch_bytes)};
    cut.partial = b.call.scratch;
    cut.phase = 1;
    if (const catena_status status = launch(ctx, b, *variant, cut); status != CATENA_OK)
        return status;
    cut.phase = 2;
    return launch(ctx, b, *variant, cut);
}

}  // namespace catena_jit
